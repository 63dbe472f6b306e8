// SPDX-License-Identifier: Apache-2.0
//
// RowLog: a long list of plain rows, appended to and read from front to back many
// times, of which only a bounded part is in memory. Without a bound (the default)
// it is a vector. With SpillTo, whenever the rows in memory reach the bound they
// move to the end of a nameless temporary file (spill_file.h); rows keep their
// numbers, and what is read back is the same rows, so results cannot depend on it.
// Where nothing can be written they stay in memory, and why_not_spilled() tells.
//
// Reading: a range-for, or a RowCursor for stretches in ascending order; both read
// the file in pieces of up to 1 MB. rows[i] of a const log works anywhere and costs a
// system call where the row is in the file. Changing a row, and the mutable
// begin() and end(), are for logs that hold all their rows in memory.
//
// One thread at a time appends; reading is safe from several threads. Failing to
// read back what was written, which is a broken disk, ends the program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/spill_file.h"

namespace culprit {

struct SpillOptions {
  uint64_t memory_bytes = 0;  // of rows in memory; 0: no bound
  std::string folder = {};    // for the file; empty: see spill_file.h
};

template <class Row>
class RowLog {
  static_assert(std::is_trivially_copyable_v<Row>);

 public:
  class Iterator;
  struct End {};

  RowLog() = default;
  RowLog(RowLog&&) noexcept = default;
  RowLog& operator=(RowLog&&) noexcept = default;
  ~RowLog() = default;
  // The copy shares what is in the file and spills no more.
  RowLog(const RowLog& other)
      : memory_(other.memory_), spilled_(other.spilled_), file_(other.file_) {}
  RowLog& operator=(const RowLog& other) { return *this = RowLog(other); }

  void SpillTo(SpillOptions options) {
    options_ = std::move(options);
    SpillIfFull();
  }
  uint64_t spilled_bytes() const { return spilled_ * sizeof(Row); }
  const std::string& why_not_spilled() const { return why_not_; }

  uint64_t size() const { return spilled_ + memory_.size(); }
  bool empty() const { return size() == 0; }
  void push_back(const Row& row) {
    memory_.push_back(row);
    if (options_.memory_bytes != 0) SpillIfFull();
  }
  void clear() {
    memory_.clear();
    spilled_ = 0;
    file_.reset();
  }

  // Those of a log that has spilled nothing.
  std::vector<Row>& memory() {
    CULPRIT_CHECK(spilled_ == 0);
    return memory_;
  }
  void resize(uint64_t count) { memory().resize(count); }
  auto begin() { return memory().begin(); }
  auto end() { return memory().end(); }
  Row& operator[](uint64_t index) { return memory()[index]; }

  Iterator begin() const { return Iterator(*this); }
  End end() const { return {}; }
  Row operator[](uint64_t index) const {
    if (index >= spilled_) return memory_[index - spilled_];
    Row row;
    ReadFile(index, 1, &row);
    return row;
  }

 private:
  template <class>
  friend class RowCursor;

  void SpillIfFull() {
    if (options_.memory_bytes == 0 || !why_not_.empty()) return;
    if (memory_.size() * sizeof(Row) < std::max<uint64_t>(options_.memory_bytes, sizeof(Row)))
      return;
    if (!file_) {
      Result<SpillFile> file = SpillFile::Create(options_.folder);
      if (!file.ok()) {
        why_not_ = file.error().ToString();
        return;
      }
      file_ = std::make_shared<SpillFile>(std::move(file).value());
    }
    const Status written = file_->Append(memory_.data(), memory_.size() * sizeof(Row));
    if (!written.ok()) {
      why_not_ = written.error().ToString();
      return;
    }
    spilled_ += memory_.size();
    memory_.clear();
  }

  void ReadFile(uint64_t begin, uint64_t count, Row* to) const {
    CULPRIT_CHECK(file_->ReadAt(begin * sizeof(Row), to, count * sizeof(Row)).ok());
  }

  SpillOptions options_;
  std::vector<Row> memory_;  // those after the first spilled_
  uint64_t spilled_ = 0;
  std::shared_ptr<SpillFile> file_;
  std::string why_not_;
};

// Reads stretches of a log; a span is good until the next Read. Cheapest where they
// ascend: it then reads ahead, more each time. One thread at a time; the log must
// outlive it unchanged.
template <class Row>
class RowCursor {
 public:
  explicit RowCursor(const RowLog<Row>& log) : log_(&log) {}

  std::span<const Row> Read(uint64_t begin, uint64_t end) {
    const uint64_t spilled = log_->spilled_;
    if (begin >= spilled) {
      return std::span<const Row>(log_->memory_).subspan(begin - spilled, end - begin);
    }
    if (begin < at_ || end > at_ + buffer_.size()) Fill(begin, end);
    return std::span<const Row>(buffer_).subspan(begin - at_, end - begin);
  }

 private:
  static constexpr uint64_t kFewRows = (1 << 12) / sizeof(Row) + 1;
  static constexpr uint64_t kManyRows = (1 << 20) / sizeof(Row) + 1;

  void Fill(uint64_t begin, uint64_t end) {
    const bool ascends = begin >= at_ && begin - at_ <= buffer_.size() + ahead_;
    ahead_ = ascends ? std::min(ahead_ * 4, kManyRows) : kFewRows;
    const uint64_t until = std::min(std::max(end, begin + ahead_), log_->size());
    const uint64_t from_file = std::min(until, log_->spilled_) - begin;
    buffer_.resize(until - begin);
    at_ = begin;
    log_->ReadFile(begin, from_file, buffer_.data());
    std::copy_n(log_->memory_.begin(), until - begin - from_file,
                buffer_.begin() + static_cast<std::ptrdiff_t>(from_file));
  }

  const RowLog<Row>* log_;
  std::vector<Row> buffer_;  // rows from at_ on
  uint64_t at_ = 0;
  uint64_t ahead_ = kFewRows;
};

// For range-for.
template <class Row>
class RowLog<Row>::Iterator {
 public:
  explicit Iterator(const RowLog& log) : log_(&log), cursor_(log) { Load(); }

  const Row& operator*() const { return piece_[at_]; }
  Iterator& operator++() {
    if (++at_ == piece_.size()) Load();
    return *this;
  }
  bool operator!=(End) const { return at_ < piece_.size(); }

 private:
  static constexpr uint64_t kStep = 4096;

  void Load() {
    piece_ = cursor_.Read(next_, std::min(next_ + kStep, log_->size()));
    next_ += piece_.size();
    at_ = 0;
  }

  const RowLog* log_;
  RowCursor<Row> cursor_;
  std::span<const Row> piece_;
  size_t at_ = 0;
  uint64_t next_ = 0;
};

}  // namespace culprit
