// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/wait_class.h"

#include <algorithm>
#include <array>

#include "trace/syscall_operation.h"
#include "waitgraph/name_memo.h"
#include "waitgraph/wait_class_table.h"

namespace culprit::waitgraph {
namespace {

using trace::Dictionary;
using trace::Event;
using trace::EventKind;
using trace::StackId;
using trace::ThreadKind;

// How far inside the function of a kernel thread a stack is. One that only
// schedules there waits for work, whatever the function is called.
enum class KernelThread : uint8_t { kNo, kEntry, kFunction, kIdle, kBusy };

bool IsLockOrCondition(WaitPurpose purpose) {
  return purpose == WaitPurpose::kWork || purpose == WaitPurpose::kCondition ||
         purpose == WaitPurpose::kReacquire;
}

// Locks stand on one another: a condition variable on a futex, a monitor on a
// condition variable. The outermost layer knows what the wait is for, except
// that a mutex inside a condition wait is that condition's own.
WaitPurpose JoinPurposes(const FrameMeaning& caller, const FrameMeaning& frame) {
  if (caller.wait_class != WaitClass::kLock || frame.wait_class != WaitClass::kLock) {
    return frame.purpose;
  }
  if (frame.purpose == WaitPurpose::kSync && IsLockOrCondition(caller.purpose)) {
    return caller.purpose;
  }
  if (frame.purpose == WaitPurpose::kWork &&
      (caller.purpose == WaitPurpose::kCondition || caller.purpose == WaitPurpose::kReacquire)) {
    return WaitPurpose::kReacquire;
  }
  if (frame.purpose == WaitPurpose::kCondition && caller.purpose != WaitPurpose::kUnknown) {
    return caller.purpose;
  }
  return frame.purpose;
}

FrameMeaning Extend(const FrameMeaning& caller, const FrameMeaning& frame) {
  FrameMeaning joined = caller;
  if (frame.strength != Strength::kNone && frame.strength >= caller.strength) {
    joined = frame;
    joined.purpose = JoinPurposes(caller, frame);
    joined.sends_too = caller.sends_too || frame.sends_too;
  }
  joined.waker = caller.waker || frame.waker;
  joined.wakes = frame.waker ? frame.wakes : caller.wakes;
  joined.releases = caller.releases || frame.releases;
  return joined;
}

KernelThread Extend(KernelThread caller, bool is_entry, const FrameMeaning& frame) {
  if (is_entry) return KernelThread::kEntry;
  switch (caller) {
    case KernelThread::kNo:
      return KernelThread::kNo;
    case KernelThread::kEntry:
      return KernelThread::kFunction;
    case KernelThread::kFunction:
      return frame.plumbing ? KernelThread::kIdle : KernelThread::kBusy;
    case KernelThread::kIdle:  // what schedule() calls is still the same wait
    case KernelThread::kBusy:
      break;
  }
  return caller;
}

FrameMeaning KnownMeaningOf(std::string_view function, ModuleKind kind) {
  thread_local std::array<NameMemo<FrameMeaning>, kModuleKinds> known;
  return known[static_cast<size_t>(kind)].Of(
      function, [&](std::string_view name) { return MeaningOf(name, kind); });
}

bool Contains(std::string_view text, std::string_view lower_case_part) {
  const auto equal = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  return std::search(text.begin(), text.end(), lower_case_part.begin(), lower_case_part.end(),
                     equal) != text.end();
}

WaitClass ClassOfDevice(std::string_view name, WaitClass otherwise) {
  if (Contains(name, "timer")) return WaitClass::kTimer;
  if (Contains(name, "disk")) return WaitClass::kDisk;
  if (Contains(name, "net")) return WaitClass::kNet;
  return otherwise;
}

// Kernel threads that end waits on behalf of a device: softirqs are mostly the
// network's, workers of high priority ("kworker/0:1H") the block layer's.
WaitClass ClassOfKernelThread(std::string_view name, WaitClass otherwise) {
  if (name.starts_with("ksoftirqd/")) return WaitClass::kNet;
  if (name.starts_with("jbd2/") || name.starts_with("xfs") || Contains(name, "kblockd") ||
      (name.starts_with("kworker/") && name.ends_with("H"))) {
    return WaitClass::kDisk;
  }
  return otherwise;
}

const trace::Thread* WakerOf(const Dictionary& dictionary, const Event& wait) {
  return wait.peer.valid() ? &dictionary.threads()[wait.peer.value] : nullptr;
}

StackClass RowOf(const StackClasses& classes, StackId stack) {
  if (!stack.valid()) return {};
  const uint32_t i = stack.value;
  return {.wait_class = classes.by_stack[i],
          .purpose = classes.purpose[i],
          .wakes = classes.wakes[i],
          .ambiguous = classes.ambiguous[i],
          .sends_too = classes.sends_too[i],
          .tells_waker = classes.tells_waker[i],
          .releases = classes.releases[i]};
}
StackClass RowOf(StackClassifier& classes, StackId stack) {
  return stack.valid() ? classes.Of(stack) : StackClass();
}

// The class of a wait that may be for anything, by who ended it, on which stack.
WaitClass ClassByWaker(const Dictionary& dictionary, const StackClass& waker_class,
                       const Event& wait, WaitClass otherwise) {
  if (waker_class.tells_waker) return waker_class.wakes;
  const trace::Thread* const waker = WakerOf(dictionary, wait);
  if (waker == nullptr) return otherwise;
  const std::string_view name = dictionary.Text(waker->name);
  if (waker->kind == ThreadKind::kDevice) return ClassOfDevice(name, otherwise);
  if (waker->kind == ThreadKind::kKernel) return ClassOfKernelThread(name, otherwise);
  return otherwise == WaitClass::kOther ? WaitClass::kIpc : otherwise;
}

// What an ambiguous wait was for, once its class is known.
WaitPurpose PurposeByClass(WaitPurpose purpose, WaitClass wait_class) {
  if (wait_class == WaitClass::kDisk) return WaitPurpose::kWork;
  if (purpose != WaitPurpose::kUnknown) return purpose;
  switch (wait_class) {
    case WaitClass::kNet:
    case WaitClass::kIpc:
    case WaitClass::kSignal:
      return WaitPurpose::kExternal;
    case WaitClass::kTimer:
      return WaitPurpose::kTimer;
    case WaitClass::kLock:
      return WaitPurpose::kSync;
    default:
      return WaitPurpose::kWork;
  }
}

// System calls of each thread by time, for waits without a stack.
class SyscallIndex {
 public:
  explicit SyscallIndex(const Timelines& timelines) : trace_(timelines.trace()) {
    const trace::Trace& trace = trace_;
    for (EventIndex i = 0; i < trace.events.size(); ++i) {
      if (trace.events[i].kind == EventKind::kSyscall) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [&](EventIndex a, EventIndex b) {
      const Event& x = trace_.events[a];
      const Event& y = trace_.events[b];
      if (x.thread != y.thread) return x.thread < y.thread;
      return timelines.IsBefore(a, b);
    });
  }

  // The system call the thread was in when this wait began.
  const Event* Around(const Event& wait) const {
    const auto after = std::partition_point(order_.begin(), order_.end(), [&](EventIndex i) {
      const Event& call = trace_.events[i];
      return call.thread != wait.thread ? call.thread < wait.thread : call.time_ns <= wait.time_ns;
    });
    if (after == order_.begin()) return nullptr;
    const Event& call = trace_.events[*(after - 1)];
    return call.thread == wait.thread && call.end_ns() >= wait.time_ns ? &call : nullptr;
  }

 private:
  const trace::Trace& trace_;
  std::vector<EventIndex> order_;
};

class WaitReader {
 public:
  WaitReader(const Timelines& timelines, const StackClasses& classes)
      : timelines_(timelines),
        dictionary_(timelines.trace().dictionary),
        classes_(classes),
        syscalls_(timelines) {}

  WaitFacts Read() {
    WaitFacts facts;
    const std::vector<Event>& events = timelines_.trace().events;
    facts.by_event.resize(events.size());
    for (EventIndex i = 0; i < events.size(); ++i) {
      if (events[i].kind != EventKind::kWait || !events[i].thread.valid()) continue;
      facts.by_event[i] = ReadWait(i, facts.syscalls);
    }
    return facts;
  }

 private:
  WaitFact ReadWait(EventIndex i, std::vector<std::string_view>& names) {
    const Event& wait = timelines_.event(i);
    const EventIndex unwait = timelines_.UnwaitOf(i);
    const StackId waker_stack = unwait == kNoEvent ? StackId() : timelines_.event(unwait).stack;
    if (wait.stack.valid()) {
      const WaitPurpose purpose = classes_.purpose[wait.stack.value];
      const bool ambiguous = classes_.ambiguous[wait.stack.value];
      if (purpose != WaitPurpose::kUnknown || ambiguous) {
        const WaitClass c = ClassifyWait(dictionary_, classes_, wait, waker_stack);
        return {c, ambiguous ? PurposeByClass(purpose, c) : purpose, WaitEvidence::kStack};
      }
    } else if (const Event* const call = syscalls_.Around(wait)) {
      const std::string_view name =
          BlockingSyscall(trace::CallNumber(call->arg0), timelines_.trace().metadata.arch);
      if (!name.empty()) return ReadCall(name, wait, waker_stack, names);
    }
    return ReadWaker(wait, waker_stack);
  }

  WaitFact ReadCall(std::string_view name, const Event& wait, StackId waker_stack,
                    std::vector<std::string_view>& names) {
    const FrameMeaning meaning = MeaningOf(name, ModuleKind::kLibrary);
    WaitFact fact{meaning.wait_class, meaning.purpose, WaitEvidence::kSyscall};
    if (meaning.ambiguous) {
      fact.wait_class =
          ClassByWaker(dictionary_, RowOf(classes_, waker_stack), wait, meaning.wait_class);
      fact.purpose = PurposeByClass(meaning.purpose, fact.wait_class);
    }
    const auto at = std::find(names.begin(), names.end(), name);
    fact.syscall = static_cast<uint16_t>(at - names.begin());
    if (at == names.end()) names.push_back(name);
    return fact;
  }

  bool EndsInKernel(StackId stack) const {
    const trace::FrameId leaf = dictionary_.stacks()[stack.value].frame;
    return (dictionary_.frames()[leaf.value].flags & trace::kKernelMode) != 0;
  }

  // Nothing but the waker is known. A thread of the same process may have
  // released a lock or handed over work; one of another process asked or
  // answered. Kernel frames that say nothing are some driver's work, though.
  WaitFact ReadWaker(const Event& wait, StackId waker_stack) const {
    const trace::Thread* const waker = WakerOf(dictionary_, wait);
    WaitFact fact;
    fact.evidence = wait.stack.valid() ? WaitEvidence::kStack : WaitEvidence::kNone;
    if (waker == nullptr) return fact;
    if (fact.evidence == WaitEvidence::kNone) fact.evidence = WaitEvidence::kWaker;
    const trace::Thread& waiter = dictionary_.threads()[wait.thread.value];
    const bool same_process = waiter.process.valid() && waiter.process == waker->process;
    fact.wait_class =
        ClassByWaker(dictionary_, RowOf(classes_, waker_stack), wait, WaitClass::kOther);
    if (same_process && fact.wait_class == WaitClass::kIpc) fact.wait_class = WaitClass::kOther;
    if (wait.stack.valid() && EndsInKernel(wait.stack)) return fact;
    fact.purpose = PurposeByClass(WaitPurpose::kUnknown, fact.wait_class);
    if (fact.wait_class != WaitClass::kOther) return fact;
    const bool handed_over = same_process && waker->kind != ThreadKind::kDevice;
    fact.purpose = handed_over ? WaitPurpose::kSync : WaitPurpose::kExternal;
    return fact;
  }

  const Timelines& timelines_;
  const Dictionary& dictionary_;
  const StackClasses& classes_;
  SyscallIndex syscalls_;
};

template <class Classes>
WaitClass ClassifyWaitBy(const Dictionary& dictionary, Classes& classes, const Event& wait,
                         StackId waker_stack) {
  const StackClass own = RowOf(classes, wait.stack);
  if (wait.stack.valid() && !own.ambiguous) return own.wait_class;
  return ClassByWaker(dictionary, RowOf(classes, waker_stack), wait, own.wait_class);
}

}  // namespace

// Of the frames and stacks that were asked for, with their callers.
class StackClassifier::Readings {
 public:
  explicit Readings(const Dictionary& dictionary)
      : dictionary_(dictionary),
        frames_(dictionary.frames().size()),
        stacks_(dictionary.stacks().size()) {
    for (const trace::Module& module : dictionary.modules()) {
      modules_.push_back(KindOfModule(dictionary.Text(module.name)));
    }
  }

  StackClass Of(StackId stack) {
    unknown_.clear();
    // A caller's stack has a smaller id than its callees'.
    uint32_t at = stack.value;
    while (at < stacks_.size() && !stacks_[at].known) {
      unknown_.push_back(at);
      const uint32_t caller = dictionary_.stacks()[at].parent.value;
      at = caller < at ? caller : UINT32_MAX;
    }
    Reading caller = at < stacks_.size() ? stacks_[at] : Reading();
    for (auto it = unknown_.rbegin(); it != unknown_.rend(); ++it) {
      caller = Below(caller, dictionary_.stacks()[*it].frame.value);
      stacks_[*it] = caller;
    }
    return RowOfReading(caller);
  }

 private:
  struct FrameReading {
    FrameMeaning meaning;
    bool kernel_thread_entry = false;
    bool known = false;
  };
  struct Reading {
    FrameMeaning meaning;
    KernelThread kernel_thread = KernelThread::kNo;
    bool known = false;
  };

  static StackClass RowOfReading(const Reading& reading) {
    const FrameMeaning& meaning = reading.meaning;
    const bool idles =
        reading.kernel_thread == KernelThread::kIdle && meaning.purpose == WaitPurpose::kUnknown;
    return {.wait_class = meaning.wait_class,
            .purpose = idles ? WaitPurpose::kExternal : meaning.purpose,
            .wakes = meaning.wakes,
            .ambiguous = meaning.ambiguous,
            .sends_too = meaning.sends_too,
            .tells_waker = meaning.waker,
            .releases = meaning.releases};
  }

  Reading Below(const Reading& caller, uint32_t frame_id) {
    const FrameReading& frame = FrameOf(frame_id);
    return {.meaning = Extend(caller.meaning, frame.meaning),
            .kernel_thread = Extend(caller.kernel_thread, frame.kernel_thread_entry, frame.meaning),
            .known = true};
  }

  const FrameReading& FrameOf(uint32_t id) {
    FrameReading& reading = frames_[id];
    if (reading.known) return reading;
    const trace::Frame& frame = dictionary_.frames()[id];
    ModuleKind kind = ModuleKind::kLibrary;
    if (frame.module.valid()) kind = modules_[frame.module.value];
    if ((frame.flags & trace::kKernelMode) != 0) kind = ModuleKind::kKernel;
    const std::string_view function = dictionary_.Text(frame.function);
    reading = {.meaning = KnownMeaningOf(function, kind),
               .kernel_thread_entry = kind != ModuleKind::kProgram && function == "kthread",
               .known = true};
    return reading;
  }

  const Dictionary& dictionary_;
  std::vector<ModuleKind> modules_;
  std::vector<FrameReading> frames_;
  std::vector<Reading> stacks_;
  std::vector<uint32_t> unknown_;
};

StackClassifier::StackClassifier(const Dictionary& dictionary)
    : readings_(std::make_unique<Readings>(dictionary)) {}
StackClassifier::~StackClassifier() = default;
StackClass StackClassifier::Of(StackId stack) { return readings_->Of(stack); }

StackClasses ClassifyStacks(const Dictionary& dictionary) {
  const size_t count = dictionary.stacks().size();
  StackClasses classes;
  classes.by_stack.resize(count);
  classes.ambiguous.resize(count);
  classes.purpose.resize(count);
  classes.sends_too.resize(count);
  classes.wakes.resize(count);
  classes.tells_waker.resize(count);
  classes.releases.resize(count);
  StackClassifier classifier(dictionary);
  for (size_t i = 0; i < count; ++i) {
    const StackClass row = classifier.Of(StackId(i));
    classes.by_stack[i] = row.wait_class;
    classes.ambiguous[i] = row.ambiguous;
    classes.purpose[i] = row.purpose;
    classes.sends_too[i] = row.sends_too;
    classes.wakes[i] = row.wakes;
    classes.tells_waker[i] = row.tells_waker;
    classes.releases[i] = row.releases;
  }
  return classes;
}

WaitClass ClassifyWait(const Dictionary& dictionary, const StackClasses& classes, const Event& wait,
                       StackId waker_stack) {
  return ClassifyWaitBy(dictionary, classes, wait, waker_stack);
}

WaitClass ClassifyWait(const Dictionary& dictionary, StackClassifier& classes, const Event& wait,
                       StackId waker_stack) {
  return ClassifyWaitBy(dictionary, classes, wait, waker_stack);
}

bool EndedByTimer(const Dictionary& dictionary, const Event& wait) {
  const trace::Thread* const waker = WakerOf(dictionary, wait);
  return waker != nullptr && waker->kind == ThreadKind::kDevice &&
         ClassOfDevice(dictionary.Text(waker->name), WaitClass::kOther) == WaitClass::kTimer;
}

WaitFacts ClassifyWaits(const Timelines& timelines, const StackClasses& classes) {
  return WaitReader(timelines, classes).Read();
}

}  // namespace culprit::waitgraph
