// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_event_table.h"

#include <algorithm>
#include <iterator>

namespace culprit::import_ {
namespace {

using Kind = CtfEventKind;

#define CULPRIT_PERF_FIELDS                                                           \
  {"perf_tid", kSlotPerfTid}, {"perf_pid", kSlotPerfPid}, {"perf_cpu", kSlotPerfCpu}, \
      {"common_flags", kSlotPerfFlags}, {                                             \
    "perf_callchain", kSlotPerfChain                                                  \
  }

constexpr CtfWant kSwitchWants[] = {
    {"prev_tid", kSlotTid},       {"prev_pid", kSlotTid},     {"next_tid", kSlotNextTid},
    {"next_pid", kSlotNextTid},   {"prev_state", kSlotState}, {"prev_comm", kSlotName},
    {"next_comm", kSlotNextName}, CULPRIT_PERF_FIELDS,
};
constexpr CtfWant kThreadWants[] = {
    {"tid", kSlotTid},   {"pid", kSlotTid},       {"comm", kSlotName},
    {"name", kSlotName}, {"filename", kSlotName}, CULPRIT_PERF_FIELDS,
};
// perf's child_pid is a tid and comes without child_tid.
constexpr CtfWant kForkWants[] = {
    {"child_tid", kSlotTid},     {"child_pid", kSlotPid},   {"parent_tid", kSlotParent},
    {"parent_pid", kSlotParent}, {"child_comm", kSlotName}, CULPRIT_PERF_FIELDS,
};
constexpr CtfWant kLttngForkWants[] = {
    {"child_tid", kSlotTid},
    {"child_pid", kSlotPid},
    {"parent_tid", kSlotParent},
    {"child_comm", kSlotName},
};
constexpr CtfWant kSyscallWants[] = {
    {"id", kSlotNumber},           {"nr", kSlotNumber},  {"_syscall_nr", kSlotNumber},
    {"__syscall_nr", kSlotNumber}, {"ret", kSlotResult}, CULPRIT_PERF_FIELDS,
};
constexpr CtfWant kBlockWants[] = {
    {"dev", kSlotDevice},  {"sector", kSlotSector}, {"nr_sector", kSlotSectors},
    {"bytes", kSlotBytes}, {"rwbs", kSlotFlags},    {"tid", kSlotTid},
    CULPRIT_PERF_FIELDS,
};
constexpr CtfWant kIrqWants[] = {
    {"vec", kSlotNumber},
    {"name", kSlotName},
    CULPRIT_PERF_FIELDS,
};
constexpr CtfWant kProcessWants[] = {
    {"tid", kSlotTid},
    {"pid", kSlotPid},
    {"name", kSlotName},
    {"type", kSlotType},
};
constexpr CtfWant kSampleWants[] = {
    {"perf_ip", kSlotAddress},
    {"perf_period", kSlotPeriod},
    CULPRIT_PERF_FIELDS,
};
constexpr CtfWant kFunctionWants[] = {{"addr", kSlotAddress}};
constexpr CtfWant kModuleWants[] = {
    {"baddr", kSlotAddress}, {"memsz", kSlotSize}, {"path", kSlotName}};
constexpr CtfWant kBuildIdWants[] = {{"baddr", kSlotAddress}, {"build_id", kSlotName}};
constexpr CtfWant kContextWants[] = {
    {"tid", kSlotContextTid},           {"pid", kSlotContextPid},
    {"vtid", kSlotContextVtid},         {"vpid", kSlotContextVpid},
    {"procname", kSlotContextName},     {"callstack_kernel", kSlotKernelStack},
    {"callstack_user", kSlotUserStack},
};
#undef CULPRIT_PERF_FIELDS

struct Row {
  std::string_view name;
  Kind kind;
  std::span<const CtfWant> wants;
};

constexpr Row kRows[] = {
    {"sched_switch", Kind::kSwitch, kSwitchWants},
    {"sched_waking", Kind::kWaking, kThreadWants},
    {"sched_wakeup", Kind::kWakeup, kThreadWants},
    {"sched_wakeup_new", Kind::kWakeup, kThreadWants},
    {"sched_process_fork", Kind::kFork, kLttngForkWants},
    {"sched_process_exit", Kind::kExit, kThreadWants},
    {"sched_process_exec", Kind::kExec, kThreadWants},
    {"exit_syscall", Kind::kLeave, kSyscallWants},
    {"compat_exit_syscall", Kind::kLeave, kSyscallWants},
    {"block_rq_issue", Kind::kIssue, kBlockWants},
    {"block_rq_complete", Kind::kComplete, kBlockWants},
    {"irq_handler_entry", Kind::kIrqEntry, kIrqWants},
    {"irq_handler_exit", Kind::kIrqExit, kIrqWants},
    {"softirq_raise", Kind::kSoftirqRaise, kIrqWants},
    {"softirq_entry", Kind::kSoftirqEntry, kIrqWants},
    {"softirq_exit", Kind::kSoftirqExit, kIrqWants},
    {"irq_softirq_raise", Kind::kSoftirqRaise, kIrqWants},
    {"irq_softirq_entry", Kind::kSoftirqEntry, kIrqWants},
    {"irq_softirq_exit", Kind::kSoftirqExit, kIrqWants},
    {"hrtimer_expire_entry", Kind::kTimerEntry, kIrqWants},
    {"hrtimer_expire_exit", Kind::kTimerExit, kIrqWants},
    {"timer_hrtimer_expire_entry", Kind::kTimerEntry, kIrqWants},
    {"timer_hrtimer_expire_exit", Kind::kTimerExit, kIrqWants},
    {"lttng_statedump_process_state", Kind::kProcessState, kProcessWants},
    {"lttng_ust_cyg_profile:func_entry", Kind::kFunctionEntry, kFunctionWants},
    {"lttng_ust_cyg_profile:func_exit", Kind::kFunctionExit, kFunctionWants},
    {"lttng_ust_cyg_profile_fast:func_entry", Kind::kFunctionEntry, kFunctionWants},
    {"lttng_ust_cyg_profile_fast:func_exit", Kind::kFunctionExit, {}},
    {"lttng_ust_statedump:bin_info", Kind::kModule, kModuleWants},
    {"lttng_ust_dl:dlopen", Kind::kModule, kModuleWants},
    {"lttng_ust_lib:load", Kind::kModule, kModuleWants},
    {"lttng_ust_statedump:build_id", Kind::kBuildId, kBuildIdWants},
    {"lttng_ust_lib:build_id", Kind::kBuildId, kBuildIdWants},
};

struct Prefix {
  std::string_view prefix;
  Kind kind;
};

// The longer first: "syscall_exit_x" is not "sys" of anything.
constexpr Prefix kSyscallPrefixes[] = {
    {"compat_syscall_entry_", Kind::kEnter}, {"compat_syscall_exit_", Kind::kLeave},
    {"syscall_entry_", Kind::kEnter},        {"syscall_exit_", Kind::kLeave},
    {"compat_sys_", Kind::kEnter},           {"sys_", Kind::kEnter},
};

constexpr std::string_view kSamplers[] = {"cpu-clock", "task-clock", "cycles", "cpu-cycles"};

// "cpu-clock:u", "cpu-clock/freq=1000/", "cpu/cycles/" as perf names its samplers.
std::string_view SamplerOf(std::string_view name) {
  if (name.starts_with("cpu/")) name.remove_prefix(4);
  const std::string_view base = name.substr(0, name.find_first_of(":/,"));
  const bool known =
      std::find(std::begin(kSamplers), std::end(kSamplers), base) != std::end(kSamplers);
  return known ? base : std::string_view();
}

const Row* Find(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// "sched:sched_switch" as perf names it.
CtfEventMeaning PerfMeaning(std::string_view system, std::string_view name) {
  if (system == "raw_syscalls" && name == "sys_enter") return {Kind::kRawEnter, {}, kSyscallWants};
  if (system == "raw_syscalls" && name == "sys_exit") return {Kind::kRawLeave, {}, kSyscallWants};
  if (system == "syscalls" && name.starts_with("sys_enter_")) {
    return {Kind::kEnter, name.substr(10), kSyscallWants};
  }
  if (system == "syscalls" && name.starts_with("sys_exit_")) {
    return {Kind::kLeave, name.substr(9), kSyscallWants};
  }
  if (system != "sched" && system != "irq" && system != "block" && system != "timer") return {};
  if (name == "sched_process_fork") return {Kind::kFork, {}, kForkWants};
  const Row* row = Find(name);
  return row == nullptr ? CtfEventMeaning() : CtfEventMeaning{row->kind, {}, row->wants};
}

struct Ending {
  std::string_view text;
  Kind kind;
};

constexpr Ending kSliceEndings[] = {
    {"_begin", Kind::kSliceBegin}, {"_start", Kind::kSliceBegin}, {"_entry", Kind::kSliceBegin},
    {"_enter", Kind::kSliceBegin}, {"_end", Kind::kSliceEnd},     {"_stop", Kind::kSliceEnd},
    {"_exit", Kind::kSliceEnd},    {"_done", Kind::kSliceEnd},
};

}  // namespace

CtfEventMeaning SliceOf(std::string_view event_name) {
  if (event_name.starts_with("lttng_")) return {};
  for (const Ending& ending : kSliceEndings) {
    if (event_name.size() > ending.text.size() && event_name.ends_with(ending.text)) {
      return {ending.kind, event_name.substr(0, event_name.size() - ending.text.size()), {}};
    }
  }
  return {};
}

std::span<const CtfWant> CtfContextWants() { return kContextWants; }

CtfEventMeaning MeaningOf(std::string_view event_name) {
  if (const Row* row = Find(event_name)) return {row->kind, {}, row->wants};
  for (const Prefix& row : kSyscallPrefixes) {
    if (event_name.starts_with(row.prefix)) {
      return {row.kind, event_name.substr(row.prefix.size()), kSyscallWants};
    }
  }
  const size_t colon = event_name.find(':');
  const std::string_view sampler = SamplerOf(event_name);
  if (!sampler.empty()) return {Kind::kSample, sampler, kSampleWants};
  if (colon != std::string_view::npos) {
    return PerfMeaning(event_name.substr(0, colon), event_name.substr(colon + 1));
  }
  constexpr std::string_view kVectors = "x86_irq_vectors_";
  if (event_name.starts_with(kVectors)) {
    const std::string_view rest = event_name.substr(kVectors.size());
    if (rest.ends_with("_entry")) return {Kind::kVectorEntry, rest.substr(0, rest.size() - 6), {}};
    if (rest.ends_with("_exit")) return {Kind::kVectorExit, rest.substr(0, rest.size() - 5), {}};
  }
  return {};
}

}  // namespace culprit::import_
