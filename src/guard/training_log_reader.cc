// SPDX-License-Identifier: Apache-2.0
#include "guard/training_log_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/text.h"

namespace culprit::guard {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// Words behind the first one; -1: no such kind.
int WordsBehind(wire::LogKind kind, uint32_t a) {
  switch (kind) {
    case wire::LogKind::kLost:
    case wire::LogKind::kTime:
      return 0;
    case wire::LogKind::kWaitEnter:
      return 4;
    case wire::LogKind::kWaitExit:
      return 3;
    case wire::LogKind::kStack:
      return a <= wire::kMaxFrames ? static_cast<int>(2 * a) : -1;
    case wire::LogKind::kEnter:
    case wire::LogKind::kRead:
    case wire::LogKind::kFork:
    case wire::LogKind::kPlace:
      return 1;
    case wire::LogKind::kWake:
    case wire::LogKind::kOwnWork:
    case wire::LogKind::kThread:
      return 2;
  }
  return -1;
}

bool ReadHeader(const InputFile& file, wire::LogHeader& header) {
  std::string bytes;
  if (!file.ReadAt(0, sizeof(header), bytes).ok() || bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.magic == wire::Magic("CGLOG_01") && header.version == wire::kWireVersion;
}

}  // namespace

Result<std::vector<LogFile>> ListLogs(const std::string& session_folder, Diagnostics& diagnostics) {
  std::vector<LogFile> logs;
  std::error_code code;
  std::filesystem::directory_iterator folder(session_folder, code);
  if (code) return Error{"cannot read the session folder: " + code.message(), session_folder};
  for (const auto& entry : folder) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("log.")) continue;
    auto file = InputFile::Open(entry.path().string());
    wire::LogHeader header;
    if (!file.ok() || !ReadHeader(file.value(), header)) {
      diagnostics.Count("training log without a header");
      continue;
    }
    logs.push_back({entry.path().string(), header.pid, header.tid, header.parent_pid,
                    header.begin_ns, file.value().size()});
  }
  std::sort(logs.begin(), logs.end(), [](const LogFile& x, const LogFile& y) {
    return std::tie(x.pid, x.tid, x.path) < std::tie(y.pid, y.tid, y.path);
  });
  return logs;
}

std::vector<LogFile> InOrderOfBirth(std::vector<LogFile> logs) {
  std::map<uint32_t, uint32_t> parent_of;
  for (const LogFile& log : logs) parent_of[log.pid] = log.parent_pid;
  std::map<uint32_t, uint32_t> generation;
  for (const auto& [pid, parent] : parent_of) {
    uint32_t steps = 0;
    for (uint32_t at = parent; parent_of.contains(at) && steps < parent_of.size(); ++steps) {
      at = parent_of[at];
    }
    generation[pid] = steps;
  }
  std::stable_sort(logs.begin(), logs.end(), [&](const LogFile& x, const LogFile& y) {
    return generation[x.pid] < generation[y.pid];
  });
  return logs;
}

Result<LogCursor> LogCursor::Open(const LogFile& log, Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(InputFile file, InputFile::Open(log.path));
  LogCursor cursor(std::move(file), diagnostics);
  cursor.file_offset_ = sizeof(wire::LogHeader);
  cursor.file_end_ = std::max<uint64_t>(log.bytes, sizeof(wire::LogHeader));
  return cursor;
}

// Keeps what was not used: the beginning of a record whose end comes now.
bool LogCursor::Refill() {
  const size_t kept = end_ - next_;
  std::copy(words_.begin() + static_cast<ptrdiff_t>(next_),
            words_.begin() + static_cast<ptrdiff_t>(end_), words_.begin());
  next_ = 0;
  end_ = kept;
  const uint64_t left = file_end_ - file_offset_;
  if (!file_.ReadAt(file_offset_, std::min<uint64_t>(left, kPieceBytes), bytes_).ok()) return false;
  const size_t count = bytes_.size() / sizeof(uint64_t);
  if (count == 0) return false;
  words_.resize(kept + count);
  std::memcpy(words_.data() + kept, bytes_.data(), count * sizeof(uint64_t));
  end_ += count;
  file_offset_ += count * sizeof(uint64_t);
  return true;
}

bool LogCursor::NextSlow(LogRecord& record) {
  while (true) {
    if (next_ == end_ && !Refill()) return false;
    const uint64_t word = words_[next_];
    const int behind = WordsBehind(static_cast<wire::LogKind>(word >> 60),
                                   static_cast<uint32_t>(word >> 40 & 0xfffff));
    if (behind < 0) {
      diagnostics_->Count("word of a training log that begins no record", 1, position());
      broken_ = true;
      ++next_;
      continue;
    }
    const size_t needed = static_cast<size_t>(behind) + 1;
    if (end_ - next_ < needed) {
      if (Refill() && end_ - next_ >= needed) continue;
      diagnostics_->Count("record cut by the end of a training log", 1, position());
      next_ = end_;
      return false;
    }
    Split(word, record);
    record.words = std::span<const uint64_t>(words_).subspan(next_ + 1, needed - 1);
    next_ += needed;
    if (record.kind == wire::LogKind::kLost) {
      diagnostics_->Count("byte of a training log that was lost", record.b, position());
      broken_ = true;
    }
    return true;
  }
}

}  // namespace culprit::guard
