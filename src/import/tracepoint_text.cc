// SPDX-License-Identifier: Apache-2.0
#include "import/tracepoint_text.h"

#include <algorithm>
#include <optional>

#include "import/importer.h"
#include "import/kernel_stacks.h"
#include "import/text_scan.h"
#include "import/tracepoint_table.h"

namespace culprit::import_ {
namespace {

using assemble::kNoTid;
using assemble::WakeContext;

constexpr size_t kMaxNames = 1'000'000;
constexpr uint8_t kNoTraits = 0xff;
constexpr uint64_t kHardInterrupt = 0x08;

struct Task {
  std::string_view comm;
  int64_t tid = kNoTid;
};

// "comm:12 [120] S" of the short form: the name may hold blanks and colons, the
// priority in brackets ends it. Leaves what follows the bracket in `text`.
std::optional<Task> TakeShortTask(std::string_view& text) {
  const size_t bracket = text.find(" [");
  if (bracket == std::string_view::npos) return {};
  const size_t close = text.find(']', bracket);
  const std::string_view task = Trim(text.substr(0, bracket));
  const size_t colon = task.rfind(':');
  if (close == std::string_view::npos || colon == std::string_view::npos) return {};
  const auto tid = ParseDecimal(task.substr(colon + 1));
  if (!tid || *tid < 0) return {};
  text = TrimLeft(text.substr(close + 1));
  return Task{task.substr(0, colon), *tid};
}

struct SwitchText {
  Task prev;
  Task next;
  PrevState state;
};

std::optional<SwitchText> ParseSwitch(std::string_view payload) {
  SwitchText out;
  const size_t next_at = payload.find("next_comm=");
  if (next_at != std::string_view::npos) {
    const std::string_view first = payload.substr(0, next_at);
    const std::string_view second = payload.substr(next_at);
    const auto prev = FieldInteger(first, "prev_pid=");
    const auto next = FieldInteger(second, "next_pid=");
    if (!prev || !next || *prev < 0 || *next < 0) return {};
    out.prev = {FieldUntil(first, "prev_comm=", " prev_pid="), *prev};
    out.next = {FieldUntil(second, "next_comm=", " next_pid="), *next};
    out.state = ParsePrevState(FieldText(first, "prev_state="));
    return out;
  }
  const auto prev = TakeShortTask(payload);
  if (!prev) return {};
  const std::string_view state = TakeToken(payload);
  if (TakeToken(payload) != "==>") return {};
  const auto next = TakeShortTask(payload);
  if (!next) return {};
  return SwitchText{*prev, *next, ParsePrevState(state)};
}

std::optional<Task> ParseWakee(std::string_view payload) {
  if (payload.starts_with("comm=")) {
    const auto tid = FieldInteger(payload, "pid=");
    if (!tid || *tid < 0) return {};
    return Task{FieldUntil(payload, "comm=", " pid="), *tid};
  }
  return TakeShortTask(payload);
}

struct BlockText {
  std::string device;
  int64_t operation = 0;
  uint64_t sector = 0;
  int64_t bytes = 0;
};

// "254,0 WS 8192 () 379768336 + 16 0x2,0,4 [jbd2]"; a completion has no bytes.
std::optional<BlockText> ParseBlock(std::string_view payload) {
  BlockText out;
  const std::string_view device = TakeToken(payload);
  const size_t comma = device.find(',');
  if (comma == std::string_view::npos) return {};
  out.device = std::string(device.substr(0, comma)) + ":" + std::string(device.substr(comma + 1));
  out.operation = BlockOperation(TakeToken(payload));
  const size_t command = payload.find(") ");
  if (command == std::string_view::npos) return {};
  payload.remove_prefix(command + 2);
  const auto sector = ParseAnyInteger(TakeToken(payload));
  if (!sector || TakeToken(payload) != "+") return {};
  const auto count = ParseDecimal(TakeToken(payload));
  if (!count || *count < 0 || *count > INT64_MAX / 512) return {};
  out.sector = static_cast<uint64_t>(*sector);
  out.bytes = *count * 512;
  return out;
}

}  // namespace

PrevState ParsePrevState(std::string_view text) {
  if (text.empty()) return {};
  if (const auto number = ParseAnyInteger(text)) {
    // Low bits: S 1, D 2, T 4, t 8, then dead and zombie in an order that
    // changed between kernels. Higher ones only qualify; alone they mean
    // "preempted".
    const int64_t state = *number & 0xff;
    return {.runnable = state == 0, .exiting = (state & 0x70) != 0 && (state & 0x0f) == 0};
  }
  return {.runnable = text.front() == 'R',
          .exiting = text.front() == 'X' || text.front() == 'x' || text.front() == 'Z'};
}

void TracepointText::Name(int64_t pid, int64_t tid, std::string_view comm) {
  if (tid <= 0 || comm.empty() || comm == "<...>" || comm == "<idle>") return;
  auto& [known_pid, known_comm] = names_[tid];
  if (known_comm == comm && (pid == known_pid || pid < 0)) return;
  if (pid >= 0) known_pid = pid;
  known_comm = comm;
  assembler_.Name(pid, tid, comm);
  if (names_.size() > kMaxNames) names_.clear();
}

trace::StackId TracepointText::Stack(const std::vector<trace::FrameId>& frames, size_t count) {
  trace::StackId stack;
  count = std::min(count, frames.size());
  size_t leaf = 0;
  while (leaf < count && (Traits(frames[leaf]) & kTracerFrame) != 0) ++leaf;
  for (size_t i = count; i > leaf; --i) {
    stack = dictionary_.InternStack(stack, frames[i - 1]);
  }
  return stack;
}

Result<bool> TracepointText::Done(const Status& status) {
  if (!status.ok()) return status.error();
  return true;
}

Result<bool> TracepointText::Malformed(const TextEvent& event) {
  diagnostics_.Count("event whose fields could not be read", 1, event.offset);
  return true;
}

Status TracepointText::Feed(const TextEvent& event) {
  CULPRIT_ASSIGN(const bool used, Dispatch(event));
  if (!used) diagnostics_.Count("event of a kind that is not used", 1, event.offset);
  return {};
}

Result<bool> TracepointText::Dispatch(const TextEvent& event) {
  if (event.name.starts_with("sched_")) return Sched(event);
  if (event.name.starts_with("sys_")) return Syscall(event);
  if (event.name.starts_with("block_rq_")) return Block(event);
  if (event.name == "task_newtask" || event.name == "task_rename") return LifeCycle(event);
  return Print(event);
}

// Marks are printed as tracing_mark_write, as 0 by old kernels, and by trace-cmd
// as print with the writer's address or name before them.
Result<bool> TracepointText::Print(const TextEvent& event) {
  std::string_view text = event.payload;
  if (event.name == "print" || event.name == "bprint") {
    const size_t colon = text.find(": ");
    if (colon != std::string_view::npos) text.remove_prefix(colon + 2);
  } else if (event.name != "tracing_mark_write" && event.name != "0") {
    return false;
  }
  Name(event.pid, event.tid, event.comm);
  CULPRIT_ASSIGN(const bool mark, marks_.Feed(event.time_ns, event.tid, text, event.offset));
  return mark || text.starts_with("C|") || text.starts_with("I|") ||
         text.starts_with("trace_event_clock_sync");
}

Result<bool> TracepointText::Sched(const TextEvent& event) {
  if (event.name == "sched_switch") return Switch(event);
  if (event.name == "sched_waking" || event.name == "sched_wakeup_new") return Waking(event);
  if (event.name == "sched_wakeup") {
    if (options_.wakeups_wake) return Waking(event);
    return true;
  }
  return LifeCycle(event);
}

bool TracepointText::IsRecorded(int64_t tid) const {
  return options_.recorded == nullptr || options_.recorded->contains(tid);
}

Result<bool> TracepointText::Switch(const TextEvent& event) {
  const auto parsed = ParseSwitch(event.payload);
  if (!parsed) return Malformed(event);
  // The head's tid is that of prev, except after its exit: the payload knows.
  const bool same = event.tid == parsed->prev.tid;
  Name(same ? event.pid : kNoTid, parsed->prev.tid, parsed->prev.comm);
  const bool told = IsRecorded(parsed->next.tid);
  if (told) Name(kNoTid, parsed->next.tid, parsed->next.comm);
  return Done(assembler_.Switch({.time_ns = event.time_ns,
                                 .cpu = event.cpu,
                                 .prev_tid = parsed->prev.tid,
                                 .next_tid = told ? parsed->next.tid : kNoTid,
                                 .prev_runnable = parsed->state.runnable,
                                 .prev_exiting = parsed->state.exiting,
                                 .prev_stack = Stack(event.stack)}));
}

uint8_t TracepointText::Traits(trace::FrameId frame) {
  if (traits_.size() <= frame.value) traits_.resize(frame.value + 1, kNoTraits);
  uint8_t& traits = traits_[frame.value];
  if (traits == kNoTraits) {
    traits = TraitsOf(dictionary_.Text(dictionary_.frames()[frame.value].function));
  }
  return traits;
}

// For tools that print no flags: an interrupt's entry or a softirq in the stack
// tells the same.
uint64_t TracepointText::FlagsOfStack(const TextEvent& event) {
  uint64_t flags = 0;
  for (const trace::FrameId frame : event.stack) {
    const std::string_view name = dictionary_.Text(dictionary_.frames()[frame.value].function);
    if ((Traits(frame) & kInterruptEntry) != 0) flags |= kHardInterrupt;
    if (name == "handle_softirqs" || name == "__do_softirq") flags |= kSoftInterruptFlag;
  }
  return flags;
}

Result<bool> TracepointText::Waking(const TextEvent& event) {
  const auto wakee = ParseWakee(event.payload);
  if (!wakee) return Malformed(event);
  if (FieldText(event.payload, "success=") == "0" || !IsRecorded(wakee->tid)) return true;
  Name(event.pid, event.tid, event.comm);
  Name(kNoTid, wakee->tid, wakee->comm);
  assemble::WakingFact fact{
      .time_ns = event.time_ns, .cpu = event.cpu, .waker_tid = event.tid, .wakee_tid = wakee->tid};
  const auto target = ParseDecimal(FieldText(event.payload, "target_cpu="));
  if (target && *target >= 0 && *target < assemble::kNoCpu) {
    fact.target_cpu = static_cast<uint16_t>(*target);
  }
  size_t frames = event.stack.size();
  if (event.flags || !event.stack.empty()) {
    std::vector<uint8_t> traits;  // caller first
    for (size_t i = event.stack.size(); i > 0; --i) traits.push_back(Traits(event.stack[i - 1]));
    const WakeVerdict verdict = JudgeWaking(event.flags.value_or(FlagsOfStack(event)), traits);
    fact.context = verdict.context;
    if (verdict.context == WakeContext::kInterrupt) {
      fact.device = verdict.device.empty() ? event.device : verdict.device;
      frames -= verdict.first_frame;
    }
  }
  fact.stack = Stack(event.stack, frames);
  return Done(assembler_.Waking(fact));
}

Result<bool> TracepointText::LifeCycle(const TextEvent& event) {
  const std::string_view payload = event.payload;
  if (event.name == "sched_process_fork") {
    const auto child = FieldInteger(payload, "child_pid=");
    if (!child || *child <= 0) return Malformed(event);
    assembler_.Fork(event.time_ns, event.tid, kNoTid, *child);
    Name(kNoTid, *child, FieldUntil(payload, "child_comm=", " child_pid="));
    return true;
  }
  if (event.name == "task_newtask") {
    const auto child = FieldInteger(payload, "pid=");
    const auto flags = ParseHexadecimal(FieldText(payload, "clone_flags="));
    if (!child || *child <= 0 || !flags) return Malformed(event);
    const bool is_thread = (static_cast<int64_t>(*flags) & kCloneThread) != 0;
    assembler_.Fork(event.time_ns, event.tid, is_thread ? event.pid : *child, *child);
    return true;
  }
  if (event.name == "sched_process_exit") {
    const auto tid = FieldInteger(payload, "pid=");
    if (!tid || *tid <= 0) return Malformed(event);
    names_.erase(*tid);
    assembler_.Exit(event.time_ns, *tid);
    return true;
  }
  if (event.name == "task_rename") {
    const auto tid = FieldInteger(payload, "pid=");
    const std::string_view comm = FieldUntil(payload, "newcomm=", " oom");
    if (!tid || *tid <= 0) return Malformed(event);
    Name(kNoTid, *tid, comm);
    return true;
  }
  return false;
}

Result<bool> TracepointText::Syscall(const TextEvent& event) {
  Name(event.pid, event.tid, event.comm);
  std::string_view text = event.payload;
  // ftrace's own form: "sys_read(fd: 3, ...)" and "sys_read -> 0x20".
  if (text.starts_with('(')) return NamedSyscall(event, event.name.substr(4), true, 0);
  if (text.starts_with("->")) {
    const auto result = ParseAnyInteger(Trim(text.substr(2)));
    if (!result) return Malformed(event);
    return NamedSyscall(event, event.name.substr(4), false, *result);
  }
  const bool enter = event.name.starts_with("sys_enter");
  if (event.name == "sys_enter" || event.name == "sys_exit") {
    if (TakeToken(text) != "NR") return Malformed(event);
    const auto number = ParseDecimal(TakeToken(text));
    if (!number) return Malformed(event);
    if (enter) {
      return Done(assembler_.SyscallEnter(event.time_ns, event.cpu, event.tid,
                                          WithArguments(*number, text), Stack(event.stack)));
    }
    const auto result = TakeToken(text) == "=" ? ParseAnyInteger(TakeToken(text)) : std::nullopt;
    if (!result) return Malformed(event);
    return Done(assembler_.SyscallExit(event.time_ns, event.cpu, event.tid, *number, *result));
  }
  if (event.name.starts_with("sys_enter_")) {
    return NamedSyscall(event, event.name.substr(10), true, 0);
  }
  if (event.name.starts_with("sys_exit_")) {
    const auto result = ParseAnyInteger(TakeToken(text));
    if (!result) return Malformed(event);
    return NamedSyscall(event, event.name.substr(9), false, *result);
  }
  return false;
}

// "(ffff8000, 80, 1, ...)" behind the number: the arguments in hexadecimal.
int64_t TracepointText::WithArguments(int64_t number, std::string_view text) const {
  const std::string_view call = trace::SyscallName(number, options_.arch);
  const std::optional<size_t> index = trace::OperationArgument(call);
  text = Trim(text);
  if (!options_.arch_known || !index || !text.starts_with('(')) return number;
  text.remove_prefix(1);
  for (size_t i = 0; i < *index; ++i) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) return number;
    text.remove_prefix(comma + 1);
  }
  const auto value = ParseHexadecimal(Trim(text.substr(0, text.find_first_of(",)"))));
  if (!value) return number;
  return trace::PackCall(number, trace::OperationOf(call, *value));
}

Result<bool> TracepointText::NamedSyscall(const TextEvent& event, std::string_view call, bool enter,
                                          int64_t result) {
  const int64_t number = trace::SyscallNumber(call, options_.arch);
  if (number == trace::kNoSyscall) return Malformed(event);
  if (enter) {
    return Done(
        assembler_.SyscallEnter(event.time_ns, event.cpu, event.tid, number, Stack(event.stack)));
  }
  return Done(assembler_.SyscallExit(event.time_ns, event.cpu, event.tid, number, result));
}

Result<bool> TracepointText::Block(const TextEvent& event) {
  const bool issue = event.name == "block_rq_issue";
  if (!issue && event.name != "block_rq_complete") return false;
  const auto block = ParseBlock(event.payload);
  if (!block) return Malformed(event);
  assemble::BlockFact fact{.time_ns = event.time_ns,
                           .device = block->device,
                           .sector = block->sector,
                           .bytes = block->bytes,
                           .operation = block->operation,
                           .tid = event.tid};
  if (!issue) return Done(assembler_.BlockComplete(fact));
  Name(event.pid, event.tid, event.comm);
  fact.stack = Stack(event.stack);
  return Done(assembler_.BlockIssue(fact));
}

}  // namespace culprit::import_
