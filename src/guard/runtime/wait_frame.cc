// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/wait_frame.h"

#include "guard/runtime/loop_head.h"
#include "guard/runtime/process.h"
#include "guard/runtime/quick_wait.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_tracker.h"
#include "guard/runtime/unwinder.h"
#include "guard/runtime/violation_report.h"
#include "guard/runtime/wait_question.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kAlive = 0x6c69766577616974;

bool IsInsideAnother(const ThreadState& state, const WaitFrame& frame) {
  const WaitFrame* outer = state.wait;
  return outer != nullptr &&
         reinterpret_cast<uint64_t>(outer) > reinterpret_cast<uint64_t>(&frame) &&
         outer->place.sp > frame.place.sp &&
         outer->liveness == (kAlive ^ reinterpret_cast<uint64_t>(outer));
}

// A set of hashes; when it is full, stacks are no longer told.
bool IsNewStack(ThreadState& state, const CallPlace& place) {
  constexpr uint32_t kSize = sizeof(state.seen_stacks) / sizeof(uint64_t);
  const uint64_t hash = ((place.site * 0x9e3779b97f4a7c15) ^ place.sp) | 1;
  for (uint32_t i = 0; i < kSize; ++i) {
    uint64_t& entry = state.seen_stacks[(hash >> 32 ^ i) % kSize];
    if (entry == hash) return false;
    if (entry != 0) continue;
    if (state.stacks + 1 >= kSize) return false;
    ++state.stacks;
    entry = hash;
    return true;
  }
  return false;
}

void LogStack(ThreadState& state, const CallPlace& place) {
  const AddressRange& stack = StackOf(state, place.sp);
  Registers registers = {};
  if (!FindCaller(place.sp + kCfaAboveEntry, stack, registers)) return;
  StackFrame frames[wire::kMaxFrames];
  const uint32_t count = Unwind(registers, stack, true, frames, wire::kMaxFrames);
  uint64_t words[1 + 2 * wire::kMaxFrames];
  words[0] = LogWord(wire::LogKind::kStack, count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    words[1 + 2 * i] = frames[i].pc;
    words[2 + 2 * i] = frames[i].cfa == 0 ? 0 : frames[i].cfa - kCfaAboveEntry;
  }
  AppendLog(state, words, 1 + 2 * count);
}

void LogEnter(ThreadState& state, const WaitFrame& frame, const WaitSpec& spec,
              const WaitQuestion& question) {
  uint64_t flags = 0;
  if (!question.blocks) flags |= wire::LogWait::kNonBlocking;
  if (question.has_timeout) flags |= wire::LogWait::kTimeout;
  const uint64_t now_ns = MonotonicNs();
  const uint64_t words[] = {
      LogWord(wire::LogKind::kWaitEnter, static_cast<uint64_t>(spec.call), frame.place.sp >> 4),
      now_ns, question.object, frame.place.site, flags};
  AppendLog(state, words, 5);
  if (question.blocks && IsNewStack(state, frame.place)) LogStack(state, frame.place);
  FlushLogIfOld(state, now_ns);
}

void EnterTraining(ThreadState& state, WaitFrame& frame, const WaitSpec& spec,
                   const CallArguments& arguments) {
  if (state.odd.in_runtime || IsInsideAnother(state, frame)) return;
  const WaitQuestion question = AskAll(spec, arguments);
  if (!question.of_interest) return;
  frame.object = question.object;
  if (question.is_read && !question.blocks) {
    frame.reads = true;
    return;
  }
  LogEnter(state, frame, spec, question);
  frame.logged = true;
  frame.liveness = kAlive ^ reinterpret_cast<uint64_t>(&frame);
  state.wait = &frame;
}

void LeaveTraining(ThreadState& state, const WaitFrame& frame, const WaitSpec& spec,
                   const CallArguments& arguments, long result) {
  const uint64_t bytes = BytesRead(spec, arguments, result);
  if (frame.reads) {
    const uint64_t words[] = {LogWord(wire::LogKind::kRead, 0, bytes), frame.object};
    if (bytes > 0) AppendLog(state, words, 2);
    return;
  }
  if (!frame.logged) return;
  const uint64_t words[] = {LogWord(wire::LogKind::kWaitExit, static_cast<uint64_t>(spec.call),
                                    ReadyEvents(spec, result)),
                            MonotonicNs(), static_cast<uint64_t>(result), bytes};
  AppendLog(state, words, 4);
}

// To know whether a descriptor blocks the system must be asked.
bool NeedsSystemCall(const WaitSpec& spec) {
  return spec.call == wire::WaitCall::kAccept || spec.call == wire::WaitCall::kRead ||
         spec.call == wire::WaitCall::kReceive;
}

bool IsGuarding(const LoadedPlan& plan) {
  return plan.mode == wire::Mode::kGuard || plan.mode == wire::Mode::kCalibrate;
}

bool MayBlockHere(ThreadState& state, const WaitSpec& spec, const CallArguments& arguments) {
  if (!NeedsSystemCall(spec)) return MayBlock(spec, arguments);
  const int fd = static_cast<int>(arguments.value[0]);
  const bool sealed = AreSystemCallsSealed();
  if (fd >= 0 && state.blocking_fd == fd + 1 && (sealed || ++state.blocking_uses < kUsesOfAnswer)) {
    return !AsksNotToBlock(spec.shape, arguments);
  }
  if (sealed) return false;
  const bool blocks = MayBlock(spec, arguments);
  state.blocking_fd = blocks ? fd + 1 : 0;
  state.blocking_uses = 0;
  return blocks;
}

// How long a thread that never goes the long way may not see that there is work.
constexpr uint64_t kAskForWorkNs = 10'000'000;

// The head of a loop that begins units, by this plan; null: the call is none.
const SiteRule* HeadAt(ThreadState& state, const LoadedPlan& plan, uint32_t call,
                       const CallPlace& place) {
  if (!IsGuarding(plan) || state.odd.in_runtime) return nullptr;
  const SiteRule* site = FindSite(plan, place.site);
  if (site == nullptr || site->call != call) return nullptr;
  const SiteRule* head = FindHead(state, plan, *site, place.sp);
  const bool begins = head != nullptr && (head->flags & wire::PlanSite::kHandOver) == 0;
  return begins ? head : nullptr;
}

void EnterHead(WaitFrame& frame, ThreadState& state, const LoadedPlan& plan, const SiteRule& head) {
  frame.plan = &plan;
  frame.head = &head;
  const uint64_t now = ReadTicks();
  frame.logged = EnterLoopWait(state, plan, head, frame.place.sp, now);
  state.work_ticks = now + TicksOfNs(kAskForWorkNs);
  if (HasWork(now)) DoWork();
}

// The wait heads no loop. The unit ends without having been one if its loop's holder waits
// to be given work; else the call need not be looked at again, while it is the same.
void EnterOrdinary(ThreadState& state, const LoadedPlan& plan, const WaitSpec& spec,
                   const CallPlace& place, bool is_site) {
  const bool may_park = (kParkingCalls >> static_cast<uint32_t>(spec.call) & 1) != 0 &&
                        (state.head->flags & wire::PlanSite::kParks) != 0;
  if (!may_park) {
    if (!is_site) state.foreign_sites[ForeignIndex(place.site)] = place.site;
  } else if (IsParking(state, plan, place.site, place.sp)) {
    DropUnit(state);
  }
}

void EnterGuarded(WaitFrame& frame, const LoadedPlan& plan, const WaitSpec& spec,
                  const CallArguments& arguments) {
  const SiteRule* site = FindSite(plan, frame.place.site);
  const bool is_site = site != nullptr && site->call == static_cast<uint32_t>(spec.call);
  ThreadState* state = is_site ? ThisThread() : KnownThread();
  if (state == nullptr || state->odd.in_runtime) return;
  if (is_site) {
    if (!MayBlockHere(*state, spec, arguments)) return;
    site = FindHead(*state, plan, *site, frame.place.sp);
    if (site != nullptr) return EnterHead(frame, *state, plan, *site);
  }
  if (state->plan == &plan) EnterOrdinary(*state, plan, spec, frame.place, is_site);
}

}  // namespace

void EnterWait(WaitFrame& frame, const WaitSpec& spec, const CallArguments& arguments,
               const CallPlace& place) {
  const LoadedPlan* plan = CurrentPlan();
  if (plan == nullptr) return;
  frame.place = place;
  if (ThreadState* state = KnownThread(); state != nullptr && IsAtItsHead(*state, plan, place) &&
                                          state->head_call == static_cast<uint32_t>(spec.call)) {
    if (state->odd.in_runtime || !MayBlockHere(*state, spec, arguments)) return;
    return EnterHead(frame, *state, *plan, *state->head);
  }
  if (IsGuarding(*plan)) return EnterGuarded(frame, *plan, spec, arguments);
  if (LogsTimes()) {
    LogCallPlace(place.sp, place.site);
  } else if (IsTraining()) {
    if (ThreadState* state = ThisThread(); state != nullptr) {
      EnterTraining(*state, frame, spec, arguments);
    }
  }
  if (HasWork(ReadTicks())) DoWork();
}

void LeaveWait(WaitFrame& frame, const WaitSpec& spec, const CallArguments& arguments,
               long result) {
  if (!frame.logged && !frame.reads) return;
  const LoadedPlan* plan = CurrentPlan();
  ThreadState* state = ThisThread();
  if (plan == nullptr || state == nullptr) return;
  if (frame.head != nullptr) {
    // The plan may be another since: modules came, perhaps by the very unit that ended.
    if (frame.plan != plan) {
      frame.plan = plan;
      frame.head = HeadAt(*state, *plan, static_cast<uint32_t>(spec.call), frame.place);
      if (frame.head == nullptr) return;
    }
    if (result < 0) state->blocking_fd = 0;
    const uint32_t ready = ReadyEvents(spec, result);
    FollowIfDue(*state, *plan, ReadyListOf(spec, arguments, ready), ready);
    return LeaveLoopWait(*state, *plan, *frame.head, frame.place.sp, ready);
  }
  frame.liveness = 0;
  if (state->wait == &frame) state->wait = nullptr;
  if (plan->mode == wire::Mode::kTrain) LeaveTraining(*state, frame, spec, arguments, result);
}

void LeaveHead(ThreadState& state, const CallPlace& place, const epoll_event* events,
               uint32_t ready) {
  FollowIfDue(state, *state.plan, FirstOf(events, ready), ready);
  LeaveLoopWait(state, *state.plan, *state.head, place.sp, ready);
}

void LeaveUnderNewPlan(ThreadState& state, const LoadedPlan& plan, uint32_t call,
                       const CallPlace& place, uint32_t ready) {
  // A child that a signal's handler forked in the meantime: the state is empty there.
  if (state.owner == nullptr) return;
  const SiteRule* head = HeadAt(state, plan, call, place);
  if (head != nullptr) LeaveLoopWait(state, plan, *head, place.sp, ready);
}

}  // namespace culprit::guard::runtime
