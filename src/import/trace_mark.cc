// SPDX-License-Identifier: Apache-2.0
#include "import/trace_mark.h"

#include <algorithm>

#include "base/text.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxPlaced = 1'000'000;

std::string_view TakeField(std::string_view& text) {
  const size_t bar = std::min(text.find('|'), text.size());
  const std::string_view field = text.substr(0, bar);
  text.remove_prefix(std::min(text.size(), bar + 1));
  return field;
}

}  // namespace

std::optional<TraceMark> ParseTraceMark(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.remove_suffix(1);
  if (text.empty() || std::string_view("BESF").find(text[0]) == std::string_view::npos) return {};
  TraceMark mark{.phase = text[0]};
  text.remove_prefix(1);
  if (text.empty()) return mark.phase == 'E' ? std::optional(mark) : std::nullopt;
  if (text[0] != '|') return {};
  text.remove_prefix(1);
  const std::optional<uint64_t> pid = ParseUnsigned(TakeField(text));
  if (pid.has_value() && *pid <= INT32_MAX) mark.pid = static_cast<int64_t>(*pid);
  if (!pid.has_value() && mark.phase != 'E') return {};
  if (mark.phase == 'S' || mark.phase == 'F') {
    // A name may hold bars itself; the cookie is what follows the last one.
    const size_t bar = text.rfind('|');
    if (bar == std::string_view::npos) return {};
    mark.name = text.substr(0, bar);
    mark.cookie = text.substr(bar + 1);
  } else if (mark.phase == 'B') {
    mark.name = text;
  }
  if (mark.phase != 'E' && mark.name.empty()) return {};
  return mark;
}

void TraceMarks::EndOperation(int64_t time_ns, const std::string& key, std::string_view name,
                              uint64_t offset) {
  const auto it = open_.find(key);
  if (it == open_.end()) {
    diagnostics_.Count("end of an asynchronous mark without its begin", 1, offset);
    return;
  }
  // Marks of several CPUs may stand a little out of order.
  const int64_t t1_ns = std::max(time_ns, it->second.time_ns);
  assembler_.Instance(name, it->second.tid, it->second.time_ns, t1_ns);
  open_.erase(it);
}

Result<bool> TraceMarks::Feed(int64_t time_ns, int64_t tid, std::string_view text,
                              uint64_t offset) {
  const std::optional<TraceMark> mark = ParseTraceMark(text);
  if (!mark.has_value() || tid < 0) return false;
  if (mark->pid > 0 && placed_.size() < kMaxPlaced && placed_.insert(tid).second) {
    assembler_.Name(mark->pid, tid, {});
  }
  if (mark->phase == 'B') {
    CULPRIT_TRY(assembler_.SliceBegin(time_ns, tid, mark->name));
  } else if (mark->phase == 'E') {
    CULPRIT_TRY(assembler_.SliceEnd(time_ns, tid));
  } else {
    const std::string key =
        std::to_string(mark->pid) + "|" + std::string(mark->name) + "|" + std::string(mark->cookie);
    if (mark->phase == 'F') {
      EndOperation(time_ns, key, mark->name, offset);
    } else if (open_.size() < kMaxOpen || open_.contains(key)) {
      open_[key] = {.tid = tid, .time_ns = time_ns};
    } else {
      diagnostics_.Count("asynchronous mark beyond the number kept open", 1, offset);
    }
  }
  return true;
}

}  // namespace culprit::import_
