// SPDX-License-Identifier: Apache-2.0
#include "import/xperf_csv_line.h"

#include <algorithm>
#include <utility>

#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr std::array<std::pair<std::string_view, XperfKind>, 24> kXperfKinds = {{
    {"P-Start", XperfKind::kProcessStart},
    {"P-End", XperfKind::kProcessEnd},
    {"P-DCStart", XperfKind::kProcessListed},
    {"P-DCEnd", XperfKind::kProcessListed},
    {"T-Start", XperfKind::kThreadStart},
    {"T-End", XperfKind::kThreadEnd},
    {"T-DCStart", XperfKind::kThreadListed},
    {"T-DCEnd", XperfKind::kThreadListed},
    {"I-Start", XperfKind::kImage},
    {"I-DCStart", XperfKind::kImage},
    {"I-DCEnd", XperfKind::kImage},
    {"CSwitch", XperfKind::kSwitch},
    {"ReadyThread", XperfKind::kReady},
    {"SampledProfile", XperfKind::kSample},
    {"Stack", XperfKind::kStack},
    {"ProfileFreq-SetInterval", XperfKind::kInterval},
    {"ProfileFreq-DCStart", XperfKind::kInterval},
    {"ProfileFreq-DCEnd", XperfKind::kInterval},
    {"DiskReadInit", XperfKind::kDiskReadInit},
    {"DiskWriteInit", XperfKind::kDiskWriteInit},
    {"DiskFlushInit", XperfKind::kDiskFlushInit},
    {"DiskRead", XperfKind::kDiskRead},
    {"DiskWrite", XperfKind::kDiskWrite},
    {"DiskFlush", XperfKind::kDiskFlush},
}};

// Without their blanks, which versions set differently.
constexpr std::array<std::pair<std::string_view, XperfColumn>, 27> kXperfColumns = {{
    {"TimeStamp", XperfColumn::kTime},
    {"ProcessName(PID)", XperfColumn::kProcess},
    {"ThreadID", XperfColumn::kThread},
    {"CPU", XperfColumn::kCpu},
    {"NewProcessName(PID)", XperfColumn::kNewProcess},
    {"NewTID", XperfColumn::kNewThread},
    {"OldProcessName(PID)", XperfColumn::kOldProcess},
    {"OldTID", XperfColumn::kOldThread},
    {"OldState", XperfColumn::kOldState},
    {"WaitReason", XperfColumn::kWaitReason},
    {"RdyProcessName(PID)", XperfColumn::kReadyProcess},
    {"RdyTID", XperfColumn::kReadyThread},
    {"InDPC", XperfColumn::kInDpc},
    {"PrgrmCtr", XperfColumn::kAddress},
    {"Address", XperfColumn::kAddress},
    {"Image!Function", XperfColumn::kFunction},
    {"IrpPtr", XperfColumn::kPacket},
    {"IOSize", XperfColumn::kBytes},
    {"ElapsedTime", XperfColumn::kElapsed},
    {"DiskNum", XperfColumn::kDisk},
    {"BaseAddress", XperfColumn::kBase},
    {"ImageBase", XperfColumn::kBase},
    {"EndAddress", XperfColumn::kEnd},
    {"FileName", XperfColumn::kFile},
    {"Source", XperfColumn::kSource},
    {"NewInterval", XperfColumn::kInterval},
    {"CommandLine", XperfColumn::kCommandLine},
}};

void SplitXperf(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (line[i] != ',' || quoted)) continue;
    fields.push_back(line.substr(begin, i - begin));
    begin = i + 1;
  }
}

std::string WithoutXperfBlanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!IsSpace(c)) out.push_back(c);
  }
  return out;
}

}  // namespace

std::string_view XperfLine::Get(XperfColumn column) const {
  const int place = event->places[static_cast<size_t>(column)];
  if (place < 0 || static_cast<size_t>(place) >= fields.size()) return {};
  const std::string_view field = fields[static_cast<size_t>(place)];
  if (static_cast<size_t>(place) + 1 < event->columns) return Trim(field);
  return Trim(text.substr(static_cast<size_t>(field.data() - text.data())));
}

std::optional<int64_t> XperfLine::Number(XperfColumn column) const {
  return ParseDecimal(Get(column));
}

std::optional<uint64_t> XperfLine::Address(XperfColumn column) const {
  return ParseHexadecimal(Get(column));
}

void XperfLayout::AddHeader(std::string_view line) {
  std::vector<std::string_view> fields;
  SplitXperf(line, fields);
  XperfEvent event;
  event.places.fill(-1);
  event.columns = fields.size();
  const std::string_view name = Trim(fields.front());
  for (const auto& [text, kind] : kXperfKinds) {
    if (text == name) event.kind = kind;
  }
  for (size_t i = 1; i < fields.size() && i < INT16_MAX; ++i) {
    const std::string title = WithoutXperfBlanks(fields[i]);
    for (const auto& [text, column] : kXperfColumns) {
      if (text == title) event.places[static_cast<size_t>(column)] = static_cast<int16_t>(i);
    }
  }
  events_[std::string(name)] = event;
}

bool XperfLayout::Parse(std::string_view line, XperfLine& out) const {
  const std::string_view name = Trim(line.substr(0, line.find(',')));
  const auto it = events_.find(std::string(name));
  if (it == events_.end()) return false;
  out.event = &it->second;
  out.text = line;
  out.fields.clear();
  if (out.event->kind != XperfKind::kOther) SplitXperf(line, out.fields);
  return true;
}

bool XperfLayout::Has(XperfKind kind) const {
  return std::any_of(events_.begin(), events_.end(),
                     [&](const auto& entry) { return entry.second.kind == kind; });
}

std::string_view TrimLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return Trim(line);
}

std::optional<XperfProcess> ParseXperfProcess(std::string_view text) {
  const size_t open = text.rfind('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  const auto pid = ParseDecimal(Trim(text.substr(open + 1, close - open - 1)));
  if (!pid || *pid < 0 || *pid > UINT32_MAX) return {};
  return XperfProcess{.name = Trim(text.substr(0, open)), .pid = *pid};
}

}  // namespace culprit::import_
