// SPDX-License-Identifier: Apache-2.0
//
// Which events of a recording become facts, and of what kind.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "import/perf_data_facts.h"

namespace culprit::import_ {
namespace {

int ClockRank(const PerfAttr& attr) {
  if (attr.IsClock()) return 0;
  if (attr.IsCycles()) return 1;
  const bool sampled = attr.type != PerfAttr::kTracepoint && attr.type != PerfAttr::kSoftware &&
                       attr.period_or_freq != 0;
  return sampled ? 2 : 3;
}

// Whether the recorder's arguments ask for whole CPUs: -a, -C, --all-cpus,
// --cpu, also among other letters ("-ag").
bool AsksForCpus(std::string_view command_line) {
  static constexpr std::string_view kWithValue = "eFcomptuGjkDSMW";
  while (!command_line.empty()) {
    const std::string_view word = command_line.substr(0, command_line.find(' '));
    command_line.remove_prefix(std::min(command_line.size(), word.size() + 1));
    if (word == "--") return false;
    if (word == "--all-cpus" || word.starts_with("--cpu")) return true;
    if (!word.starts_with('-') || word.starts_with("--")) continue;
    for (const char letter : word.substr(1)) {
      if (letter == 'a' || letter == 'C') return true;
      if (kWithValue.find(letter) != std::string_view::npos) break;
    }
  }
  return false;
}

}  // namespace

void PerfDataFacts::PlanTracepoint(const PerfAttr& attr, Event& event) {
  const auto format =
      std::find_if(session_.formats.begin(), session_.formats.end(),
                   [&](const EventFormat& known) { return known.id == attr.config; });
  if (format == session_.formats.end()) {
    if (attr.name == "sched:sched_switch") event.role = Role::kSwitchStack;
    return;
  }
  const TracepointRow row = RowOf(format->system, format->name);
  event.kind = row.kind;
  if (row.kind != Kind::kUnused) event.role = Role::kTracepoint;
  for (size_t i = 0; i < row.fields.size(); ++i) event.fields[i] = format->Find(row.fields[i]);
  if (format->name == "sched_stat_runtime") {
    event.role = Role::kRuntime;
    event.fields = {format->Find("pid"), format->Find("runtime")};
  }
  if (row.kind == Kind::kEnter || row.kind == Kind::kExitCall) {
    if (event.fields[0] == nullptr) event.fields[0] = format->Find("nr");
    if (row.kind == Kind::kEnter) event.fields[1] = OperationField(*format);
  }
  event.flags = format->Find("common_flags");
  event.target_cpu = format->Find("target_cpu");
  if (row.kind == Kind::kSwitch) {
    states_ = TaskStates::FromPrint(format->print);
    if (!attr.Has(kSampleRaw)) event.role = Role::kSwitchStack;
  }
}

// "probe_app:f" and "probe_app:f__return" as perf probe names them. An entry without its
// return would never end.
void PerfDataFacts::PlanProbes() {
  struct Probe {
    size_t event;
    const EventField* address;
  };
  constexpr std::string_view kReturn = "__return";
  std::map<std::pair<std::string, std::string>, Probe> entries;
  std::map<std::pair<std::string, std::string>, Probe> returns;
  for (size_t i = 0; i < events_.size(); ++i) {
    const PerfAttr& attr = session_.attrs.all()[i];
    if (attr.type != PerfAttr::kTracepoint || events_[i].role != Role::kUnused) continue;
    for (const EventFormat& format : session_.formats) {
      if (format.id != attr.config || !format.system.starts_with("probe_")) continue;
      const std::string_view name = format.name;
      if (const EventField* at = format.Find("__probe_ip"); at != nullptr) {
        entries[{format.system, format.name}] = {i, at};
      } else if (const EventField* of = format.Find("__probe_func");
                 of != nullptr && name.ends_with(kReturn)) {
        const std::string function(name.substr(0, name.size() - kReturn.size()));
        returns[{format.system, function}] = {i, of};
      }
    }
  }
  for (const auto& [name, probe] : returns) {
    const auto entry = entries.find(name);
    if (entry == entries.end()) continue;
    events_[probe.event].role = Role::kFunctionReturn;
    events_[probe.event].fields[0] = probe.address;
    events_[entry->second.event].role = Role::kFunctionEntry;
    events_[entry->second.event].fields[0] = entry->second.address;
  }
}

void PerfDataFacts::PlanClock(const ImportOptions& options) {
  const auto& attrs = session_.attrs.all();
  int best = 3;
  for (const PerfAttr& attr : attrs) best = std::min(best, ClockRank(attr));
  bool chosen = false;
  uint64_t clock_config = 0;
  for (size_t i = 0; i < attrs.size() && best < 3; ++i) {
    if (ClockRank(attrs[i]) != best || (best == 2 && chosen)) continue;
    // cpu-clock and task-clock count the same time; cycles of different cores,
    // or of the kernel and the user apart, do not.
    if (best == 0 && chosen && attrs[i].config != clock_config) continue;
    clock_config = attrs[i].config;
    Event& event = events_[i];
    event.role = Role::kRunning;
    event.period_is_ns = attrs[i].IsClock();
    event.period_ns = options.default_period_ns;
    const auto number =
        static_cast<int64_t>(std::min<uint64_t>(attrs[i].period_or_freq, 1'000'000'000'000));
    if (attrs[i].is_freq && number > 0) {
      event.period_ns = std::max<int64_t>(1, 1'000'000'000 / number);
    } else if (event.period_is_ns && number > 0) {
      event.period_ns = number;
    } else {
      diagnostics_.Count("event sampled by a period that is no time, a period was assumed");
    }
    if (!chosen) writer_.metadata().sample_period_ns = event.period_ns;
    timeless_ = timeless_ || !attrs[i].Has(kSampleTime);
    chosen = true;
  }
  if (!chosen) return;
  for (Event& event : events_) {
    if (event.role == Role::kRuntime) event.role = Role::kUnused;
  }
}

// The same thing may be recorded twice, by two events.
void PerfDataFacts::DropDoubles() {
  const auto has = [&](Kind kind) {
    return std::any_of(events_.begin(), events_.end(), [&](const Event& event) {
      return event.role == Role::kTracepoint && event.kind == kind;
    });
  };
  const bool waking = has(Kind::kWaking);
  const bool raw_calls = has(Kind::kRawEnter);
  call_exits_ = raw_calls ? has(Kind::kRawExit) : has(Kind::kExitCall);
  switch_records_ = switch_records_ && !has(Kind::kSwitch);
  for (Event& event : events_) {
    const bool call = event.kind == Kind::kEnter || event.kind == Kind::kExitCall;
    const bool life = event.kind == Kind::kFork || event.kind == Kind::kExit;
    if ((waking && event.kind == Kind::kWakeup) || (raw_calls && call) || (fork_records_ && life)) {
      event.role = Role::kUnused;
      event.kind = Kind::kNone;  // not worth a line: it is not lost
    }
  }
}

void PerfDataFacts::Plan(const ImportOptions& options) {
  events_.resize(session_.attrs.all().size());
  for (size_t i = 0; i < events_.size(); ++i) {
    const PerfAttr& attr = session_.attrs.all()[i];
    switch_records_ = switch_records_ || attr.context_switch;
    fork_records_ = fork_records_ || attr.has_tasks;
    if (attr.type == PerfAttr::kTracepoint) PlanTracepoint(attr, events_[i]);
    if (attr.IsContextSwitches()) events_[i].role = Role::kSwitchStack;
  }
  partial_ = !session_.command_line.empty() && !AsksForCpus(session_.command_line);
  const auto all = session_.simpleperf.find("system_wide_collection");
  if (all != session_.simpleperf.end()) partial_ = all->second == "false";
  PlanProbes();
  PlanClock(options);
  DropDoubles();
}

}  // namespace culprit::import_
