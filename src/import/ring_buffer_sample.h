// SPDX-License-Identifier: Apache-2.0
//
// RingSample: pages of a ring buffer written down event by event, with the
// formats that describe them, for tests. Either byte order, either size of
// long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/event_format.h"

namespace culprit::import_ {

class RingSample {
 public:
  explicit RingSample(ByteOrder order = ByteOrder::kLittle, size_t long_bytes = 8)
      : order_(order), long_bytes_(long_bytes) {}

  static constexpr uint16_t kSwitchId = 300;
  static constexpr uint16_t kWakingId = 301;
  static constexpr uint16_t kStackId = 4;
  static constexpr uint16_t kPrintId = 5;
  static constexpr size_t kPageBytes = 4096;

  static std::string Common(std::string_view name, int id) {
    return "name: " + std::string(name) + "\nID: " + std::to_string(id) +
           "\nformat:\n"
           "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
           "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
           "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
           "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
  }
  static std::string SwitchFormat() {
    return Common("sched_switch", kSwitchId) +
           "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n"
           "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
           "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
           "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:1;\n"
           "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\n"
           "print fmt: \"%s\", REC->prev_state ? __print_flags(REC->prev_state, \"|\", { 0x0001, "
           "\"S\" }, { 0x0002, \"D\" }, { 0x0010, \"X\" }, { 0x0020, \"Z\" }) : \"R\"\n";
  }
  static std::string WakingFormat() {
    return Common("sched_waking", kWakingId) +
           "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:1;\n"
           "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
  }
  static std::string StackFormat() {
    return Common("kernel_stack", kStackId) +
           "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
           "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
  }
  static std::string PrintFormat() {
    return Common("print", kPrintId) +
           "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
           "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:1;\n";
  }
  std::string HeaderPage() const {
    const std::string size = std::to_string(long_bytes_);
    const size_t data = 8 + long_bytes_;
    return "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
           "\tfield: local_t commit;\toffset:8;\tsize:" +
           size +
           ";\tsigned:1;\n"
           "\tfield: char data;\toffset:" +
           std::to_string(data) + ";\tsize:" + std::to_string(kPageBytes - data) + ";\tsigned:1;\n";
  }

  std::string Number(uint64_t value, size_t size) const {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) {
      const size_t shift = 8 * (order_ == ByteOrder::kLittle ? i : size - 1 - i);
      bytes.push_back(static_cast<char>(value >> shift));
    }
    return bytes;
  }
  std::string Head(uint32_t type, uint32_t delta) const {
    return Number(order_ == ByteOrder::kLittle ? delta << 5 | type : type << 27 | delta, 4);
  }
  std::string Record(uint16_t id, int32_t tid, uint8_t flags = 0) const {
    return Number(id, 2) + Number(flags, 1) + Number(0, 1) + Number(static_cast<uint32_t>(tid), 4);
  }
  static std::string Comm(std::string_view name) {
    std::string text(name.substr(0, 15));
    text.resize(16);
    return text;
  }

  // Appends an event `delta` ticks after the one before.
  RingSample& Event(uint32_t delta, std::string data) {
    data.resize((data.size() + 3) & ~size_t{3});
    if (data.size() / 4 <= 28) {
      events_ += Head(static_cast<uint32_t>(data.size() / 4), delta) + data;
    } else {
      events_ += Head(0, delta) + Number(data.size() + 4, 4) + data;
    }
    return *this;
  }
  RingSample& Raw(std::string_view bytes) {
    events_ += bytes;
    return *this;
  }
  RingSample& Switch(uint32_t delta, std::string_view prev, int32_t prev_tid, uint64_t state,
                     std::string_view next, int32_t next_tid) {
    return Event(delta, Record(kSwitchId, prev_tid) + Comm(prev) +
                            Number(static_cast<uint32_t>(prev_tid), 4) + Number(0, 4) +
                            Number(state, 8) + Comm(next) +
                            Number(static_cast<uint32_t>(next_tid), 4) + Number(0, 4));
  }
  RingSample& Waking(uint32_t delta, int32_t waker, std::string_view comm, int32_t tid,
                     uint8_t flags = 0) {
    return Event(delta, Record(kWakingId, waker, flags) + Comm(comm) +
                            Number(static_cast<uint32_t>(tid), 4) + Number(0, 4));
  }
  // Leaf first.
  RingSample& Stack(uint32_t delta, int32_t tid, std::initializer_list<uint64_t> addresses) {
    std::string data = Record(kStackId, tid) + Number(addresses.size(), 4) + Number(0, 4);
    for (const uint64_t address : addresses) data += Number(address, long_bytes_);
    return Event(delta, data);
  }
  RingSample& Print(uint32_t delta, int32_t tid, std::string_view text) {
    return Event(delta, Record(kPrintId, tid) + Number(0, 8) + std::string(text) + '\0');
  }

  // The page so far; the next one begins empty.
  std::string Page(uint64_t time, uint64_t commit_flags = 0) {
    std::string page =
        Number(time, 8) + Number(events_.size() | commit_flags, long_bytes_) + events_;
    page.resize(kPageBytes);
    events_.clear();
    return page;
  }

 private:
  ByteOrder order_;
  size_t long_bytes_;
  std::string events_;
};

}  // namespace culprit::import_
