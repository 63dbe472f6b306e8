// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto_schedule.h"

#include <algorithm>
#include <tuple>

namespace culprit::export_ {
namespace {

constexpr uint32_t kSchedSwitch = 4;  // of FtraceEvent
constexpr int64_t kPriority = 120;    // the model knows none: that of ordinary tasks

using Task = PerfettoSchedule::Task;

Status WriteSwitch(uint16_t cpu, uint64_t time_ns, const Task& prev, SwitchState state,
                   const Task& next, FtraceBundles& ftrace) {
  ProtoWriter event;
  event.Bytes(1, prev.name).Int(2, prev.tid).Int(3, kPriority);
  event.Uint(4, static_cast<uint64_t>(state));
  event.Bytes(5, next.name).Int(6, next.tid).Int(7, kPriority);
  return ftrace.Add(cpu, time_ns, prev.tid, kSchedSwitch, event);
}

}  // namespace

Status PerfettoSchedule::Write(const std::function<Task(trace::ThreadId)>& task_of,
                               FtraceBundles& ftrace) {
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
    return std::tie(a.cpu, a.begin_ns, a.end_ns, a.thread) <
           std::tie(b.cpu, b.begin_ns, b.end_ns, b.thread);
  });
  const Task idle;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Span& span = spans_[i];
    const Task task = task_of(span.thread);
    const Span* before = i > 0 && spans_[i - 1].cpu == span.cpu ? &spans_[i - 1] : nullptr;
    // A thread cannot be switched to itself: even without a gap the CPU idled.
    const bool direct =
        before != nullptr && before->end_ns >= span.begin_ns && before->thread != span.thread;
    if (!direct) {
      CULPRIT_TRY(WriteSwitch(span.cpu, span.begin_ns, idle, SwitchState::kRunnable, task, ftrace));
    }
    const Span* after =
        i + 1 < spans_.size() && spans_[i + 1].cpu == span.cpu ? &spans_[i + 1] : nullptr;
    // Where spans overlap, which no good trace has, the later one cuts.
    const bool hands_over =
        after != nullptr && after->begin_ns <= span.end_ns && after->thread != span.thread;
    const uint64_t end_ns = hands_over ? after->begin_ns : span.end_ns;
    CULPRIT_TRY(WriteSwitch(span.cpu, end_ns, task, span.state,
                            hands_over ? task_of(after->thread) : idle, ftrace));
  }
  return {};
}

}  // namespace culprit::export_
