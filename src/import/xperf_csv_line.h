// SPDX-License-Identifier: Apache-2.0
//
// Lines of `xperf -a dumper`: the name of an event, then its columns, with
// commas between them. Which columns an event has differs between versions; the
// header lines at the beginning say so, and are believed:
//
//   BeginHeader
//     CSwitch,  TimeStamp, New Process Name ( PID),    New TID, ..., CPU, ...
//   EndHeader
//     CSwitch,     214810,        app.exe (14224),       5956, ...,   1, ...
//
// A field may hold commas if it is quoted or the last one. Times are in
// microseconds. Views point into the line. No allocation per line but the fields'
// vector, which the caller keeps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace culprit::import_ {

enum class XperfKind : uint8_t {
  kOther,
  kProcessStart,
  kProcessEnd,
  kProcessListed,
  kThreadStart,
  kThreadEnd,
  kThreadListed,
  kImage,
  kSwitch,
  kReady,
  kSample,
  kStack,
  kInterval,
  kDiskReadInit,
  kDiskWriteInit,
  kDiskFlushInit,
  kDiskRead,
  kDiskWrite,
  kDiskFlush,
};

enum class XperfColumn : uint8_t {
  kTime,
  kProcess,
  kThread,
  kCpu,
  kNewProcess,
  kNewThread,
  kOldProcess,
  kOldThread,
  kOldState,
  kWaitReason,
  kReadyProcess,
  kReadyThread,
  kInDpc,
  kAddress,
  kFunction,
  kPacket,
  kBytes,
  kElapsed,
  kDisk,
  kBase,
  kEnd,
  kFile,
  kSource,
  kInterval,
  kCommandLine,
  kCount,
};

// Where the columns of one event stand.
struct XperfEvent {
  XperfKind kind = XperfKind::kOther;
  std::array<int16_t, static_cast<size_t>(XperfColumn::kCount)> places;  // -1: it has none
  size_t columns = 0;                                                    // with the name
};

// A line, split.
struct XperfLine {
  const XperfEvent* event = nullptr;
  std::string_view text;
  std::vector<std::string_view> fields;

  // Trimmed; empty: not there. The last column has all that is left.
  std::string_view Get(XperfColumn column) const;
  std::optional<int64_t> Number(XperfColumn column) const;    // decimal
  std::optional<uint64_t> Address(XperfColumn column) const;  // hexadecimal
};

class XperfLayout {
 public:
  // A line between BeginHeader and EndHeader.
  void AddHeader(std::string_view line);
  // False: no event of this name has a header.
  bool Parse(std::string_view line, XperfLine& out) const;
  bool Has(XperfKind kind) const;

 private:
  std::unordered_map<std::string, XperfEvent> events_;
};

// Without the blanks around it and Windows' end of line.
std::string_view TrimLine(std::string_view line);

struct XperfProcess {
  std::string_view name;
  int64_t pid = -1;
};
// "app.exe (14224)", "System (   4)".
std::optional<XperfProcess> ParseXperfProcess(std::string_view text);

}  // namespace culprit::import_
