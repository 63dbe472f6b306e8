// SPDX-License-Identifier: Apache-2.0
#include "import/instance_rule.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/file.h"
#include "base/glob.h"
#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

using trace::Event;
using trace::kNoTime;
using trace::ThreadId;

constexpr std::string_view kRuleHint =
    "'NAME: process GLOB' or 'NAME: process-start GLOB .. call GLOB'";

Error BadRule(std::string_view text) {
  return {.message = "cannot read the scenario rule '" + std::string(text) + "'",
          .hint = std::string(kRuleHint)};
}

// The first thread of each process: the one whose tid is the pid, else the one
// seen first.
std::vector<ThreadId> FirstThreads(const trace::Dictionary& dictionary) {
  std::vector<ThreadId> first(dictionary.processes().size());
  for (size_t i = 0; i < dictionary.threads().size(); ++i) {
    const trace::Thread& thread = dictionary.threads()[i];
    if (!thread.process.valid() || thread.process.value >= first.size()) continue;
    ThreadId& slot = first[thread.process.value];
    const bool is_main = thread.tid == dictionary.processes()[thread.process.value].pid;
    if (!slot.valid() || (is_main && dictionary.threads()[slot.value].tid != thread.tid)) {
      slot = ThreadId(i);
    }
  }
  return first;
}

std::vector<bool> StacksWith(const trace::Dictionary& dictionary, std::string_view glob) {
  std::vector<bool> frames(dictionary.frames().size());
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i] = MatchesGlob(glob, dictionary.FrameName(trace::FrameId(i)));
  }
  // A caller's stack stands before the stacks that extend it.
  std::vector<bool> stacks(dictionary.stacks().size());
  for (size_t i = 0; i < stacks.size(); ++i) {
    const trace::StackNode& node = dictionary.stacks()[i];
    stacks[i] =
        (node.frame.valid() && node.frame.value < frames.size() && frames[node.frame.value]) ||
        (node.parent.valid() && node.parent.value < i && stacks[node.parent.value]);
  }
  return stacks;
}

// When each thread of interest first had one of `stacks`; kNoTime: never.
Result<std::unordered_map<uint32_t, int64_t>> FirstTimes(
    const trace::TraceReader& reader, const std::unordered_map<uint32_t, int64_t>& not_before,
    const std::vector<bool>& stacks) {
  std::unordered_map<uint32_t, int64_t> first;
  std::vector<Event> events;
  for (size_t block = 0; block < reader.blocks().size(); ++block) {
    CULPRIT_TRY(reader.ReadBlock(block, events));
    for (const Event& event : events) {
      if (!event.stack.valid() || event.stack.value >= stacks.size()) continue;
      const auto thread = not_before.find(event.thread.value);
      if (thread == not_before.end() || event.time_ns < thread->second) continue;
      if (!stacks[event.stack.value]) continue;
      const auto [it, is_new] = first.emplace(event.thread.value, event.time_ns);
      if (!is_new) it->second = std::min(it->second, event.time_ns);
    }
  }
  return first;
}

// Cuts at commas; a field in double quotes may hold some.
std::vector<std::string> SplitCsv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::optional<ThreadId> ThreadAt(const trace::Dictionary& dictionary, int64_t tid,
                                 int64_t time_ns) {
  std::optional<ThreadId> found;
  for (size_t i = 0; i < dictionary.threads().size(); ++i) {
    const trace::Thread& thread = dictionary.threads()[i];
    if (thread.tid != tid || thread.kind == trace::ThreadKind::kDevice) continue;
    if (!found || thread.start_ns == kNoTime || thread.start_ns <= time_ns) found = ThreadId(i);
  }
  return found;
}

}  // namespace

Result<InstanceRule> ParseInstanceRule(std::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return BadRule(text);
  InstanceRule rule{.scenario = std::string(Trim(text.substr(0, colon)))};
  std::string_view rest = text.substr(colon + 2);
  const std::string_view kind = TakeToken(rest);
  if (kind == "process") {
    rule.process = Trim(rest);
  } else if (kind == "process-start") {
    const size_t dots = rest.find(" .. ");
    if (dots == std::string_view::npos) return BadRule(text);
    rule.process = Trim(rest.substr(0, dots));
    std::string_view end = rest.substr(dots + 4);
    if (TakeToken(end) != "call") return BadRule(text);
    rule.call = Trim(end);
    if (rule.call.empty()) return BadRule(text);
  }
  if (rule.scenario.empty() || rule.process.empty()) return BadRule(text);
  return rule;
}

Result<std::vector<InstanceRow>> ReadInstanceTable(const std::string& path) {
  CULPRIT_ASSIGN(const std::string text, ReadWholeFile(path));
  std::vector<InstanceRow> rows;
  size_t begin = 0;
  for (size_t number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t offset = begin;
    begin = end + 1;
    if (Trim(line).empty() || (number == 1 && line.starts_with("trace,"))) continue;
    const std::vector<std::string> fields = SplitCsv(line);
    InstanceRow row;
    bool good = fields.size() == 5;
    if (good) {
      row.trace = fields[0];
      row.scenario = fields[1];
      const auto tid = ParseDecimal(Trim(fields[2]));
      const auto t0_ns = ParseDecimal(Trim(fields[3]));
      const auto t1_ns = ParseDecimal(Trim(fields[4]));
      good = tid && t0_ns && t1_ns && *t0_ns <= *t1_ns && !row.scenario.empty();
      if (good) {
        row.tid = *tid;
        row.t0_ns = *t0_ns;
        row.t1_ns = *t1_ns;
      }
    }
    if (!good) {
      return Error{.message = "line " + std::to_string(number) + " is no instance",
                   .file = path,
                   .offset = offset,
                   .hint = "a line is trace,scenario,tid,t0_ns,t1_ns"};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<FoundInstance>> FindInstances(const trace::TraceReader& reader,
                                                 const std::vector<InstanceRule>& rules) {
  const trace::Dictionary& dictionary = reader.dictionary();
  const trace::Metadata& metadata = reader.metadata();
  const std::vector<ThreadId> first_threads = FirstThreads(dictionary);
  std::vector<FoundInstance> found;
  for (const InstanceRule& rule : rules) {
    std::vector<FoundInstance> candidates;
    std::unordered_map<uint32_t, int64_t> starts;
    for (size_t i = 0; i < first_threads.size(); ++i) {
      const trace::Process& process = dictionary.processes()[i];
      if (!first_threads[i].valid() || !MatchesGlob(rule.process, dictionary.Text(process.name))) {
        continue;
      }
      const int64_t t0_ns = process.start_ns == kNoTime
                                ? metadata.begin_ns
                                : std::max(process.start_ns, metadata.begin_ns);
      const int64_t t1_ns =
          process.end_ns == kNoTime ? metadata.end_ns : std::min(process.end_ns, metadata.end_ns);
      if (t0_ns > t1_ns) continue;
      candidates.push_back({rule.scenario, first_threads[i], t0_ns, t1_ns});
      starts[first_threads[i].value] = t0_ns;
    }
    if (!rule.call.empty() && !candidates.empty()) {
      const std::vector<bool> stacks = StacksWith(dictionary, rule.call);
      CULPRIT_ASSIGN(const auto first, FirstTimes(reader, starts, stacks));
      std::erase_if(candidates, [&](FoundInstance& candidate) {
        const auto it = first.find(candidate.thread.value);
        if (it != first.end()) candidate.t1_ns = it->second;
        return it == first.end();
      });
    }
    found.insert(found.end(), candidates.begin(), candidates.end());
  }
  return found;
}

std::vector<FoundInstance> InstancesFromTable(const trace::TraceReader& reader,
                                              const std::vector<InstanceRow>& rows,
                                              std::string_view input, Diagnostics& diagnostics) {
  const trace::Metadata& metadata = reader.metadata();
  const std::string_view base = input.substr(input.find_last_of("/:") + 1);
  std::vector<FoundInstance> found;
  for (const InstanceRow& row : rows) {
    if (row.trace != "*" && row.trace != base && row.trace != input) continue;
    const auto thread = ThreadAt(reader.dictionary(), row.tid, row.t0_ns);
    const int64_t t0_ns = std::max(row.t0_ns, metadata.begin_ns);
    const int64_t t1_ns = std::min(row.t1_ns, metadata.end_ns);
    if (!thread || t0_ns > t1_ns) {
      diagnostics.Count("instance of the table that is not in the trace");
      continue;
    }
    found.push_back({row.scenario, *thread, t0_ns, t1_ns});
  }
  return found;
}

}  // namespace culprit::import_
