// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/segment_text.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace culprit::waitgraph {

using trace::Event;
using trace::EventKind;
using trace::FrameId;
using trace::StackId;
using trace::ThreadId;

namespace {

// Where every wait ends, whatever it was for; drivers and file systems tell more.
bool IsSystemFrame(const trace::Dictionary& dictionary, FrameId id) {
  const trace::Frame& frame = dictionary.frames()[id.value];
  if (!frame.module.valid()) return (frame.flags & trace::kKernelMode) != 0;
  const std::string_view module = dictionary.Text(dictionary.modules()[frame.module.value].name);
  static constexpr std::array<std::string_view, 8> kSystem = {
      "[kernel", "vmlinux", "ntoskrnl", "ntkrnl", "ntdll", "libc.so", "libc-", "libpthread"};
  return module == "kernel" || std::any_of(kSystem.begin(), kSystem.end(),
                                           [&](auto prefix) { return module.starts_with(prefix); });
}

std::string WithFrames(const std::string& text, const std::string& frames) {
  return frames.empty() ? text : text + "  " + frames;
}

}  // namespace

SegmentText::SegmentText(const Timelines& timelines, size_t frames)
    : timelines_(timelines),
      frames_(frames),
      classes_(ClassifyStacks(timelines.trace().dictionary)) {}

std::string SegmentText::Thread(ThreadId id) const {
  if (!id.valid()) return "[unknown]";
  const trace::Thread& thread = dictionary().threads()[id.value];
  std::string name(dictionary().Text(thread.name));
  if (thread.kind == trace::ThreadKind::kDevice) return name;
  if (thread.process.valid()) {
    const auto process = dictionary().Text(dictionary().processes()[thread.process.value].name);
    if (!process.empty() && process != name) name = std::string(process) + "/" + name;
  }
  return name + " (" + std::to_string(thread.tid) + ")";
}

std::string SegmentText::Frames(StackId stack) const {
  std::vector<FrameId> frames = dictionary().StackFrames(stack);
  std::vector<FrameId> user;
  std::copy_if(frames.begin(), frames.end(), std::back_inserter(user),
               [&](FrameId f) { return !IsSystemFrame(dictionary(), f); });
  if (!user.empty()) frames = std::move(user);
  std::string text;
  for (size_t i = 0; i < std::min(frames.size(), frames_); ++i) {
    if (i > 0) text += " < ";
    text += dictionary().FrameName(frames[frames.size() - 1 - i]);
  }
  return text;
}

waitgraph::WaitClass SegmentText::ClassOf(EventIndex wait) const {
  const EventIndex unwait = timelines_.UnwaitOf(wait);
  const StackId waker = unwait == kNoEvent ? StackId() : timelines_.event(unwait).stack;
  return ClassifyWait(dictionary(), classes_, timelines_.event(wait), waker);
}

std::string SegmentText::Service(const Event& hardware) const {
  static constexpr std::array<std::string_view, 4> kOperations = {"read", "write", "flush",
                                                                  "discard"};
  const bool known = hardware.arg1 >= 0 && hardware.arg1 < 4;
  std::string text(known ? kOperations[static_cast<size_t>(hardware.arg1)] : "request");
  if (hardware.arg0 > 0) text += " of " + FormatBytes(static_cast<uint64_t>(hardware.arg0));
  return text;
}

std::string SegmentText::Describe(EventIndex index) const {
  const Event& e = timelines_.event(index);
  const std::string who = Thread(e.thread);
  const std::string frames = Frames(e.stack);
  switch (e.kind) {
    case EventKind::kWait:
      return WithFrames(who + " waits [" + std::string(Name(ClassOf(index))) + "]", frames);
    case EventKind::kReady:
      return who + " ready" +
             (e.peer.valid() ? ", " + Thread(e.peer) + " held the CPU" : std::string());
    case EventKind::kHardware:
      return WithFrames(who + " serves a " + Service(e), frames);
    default:
      return WithFrames(who + " runs", frames.empty() ? "[not sampled]" : frames);
  }
}

std::string SegmentText::Describe(const Segment& s) const {
  const bool has_event = s.event != kNoEvent;
  const std::string note(Name(s.note));
  switch (s.kind) {
    case SegmentKind::kUnattributed:
      return note.empty() ? "[unattributed]" : "[unattributed: " + note + "]";
    case SegmentKind::kHardware: {
      const bool request = has_event && timelines_.event(s.event).kind == EventKind::kHardware;
      const bool queueing = s.note == SegmentNote::kQueueing;
      if (!request) return Thread(s.thread);
      return Thread(s.thread) + (queueing ? ": before the issue of a " : ": ") +
             Service(timelines_.event(s.event));
    }
    case SegmentKind::kWait:
    case SegmentKind::kRunning:
    case SegmentKind::kReady:
      break;
  }
  std::string text = has_event ? Describe(s.event) : Thread(s.thread);
  // Whose the instance is stands in the head.
  const std::string who = Thread(s.thread) + " ";
  if (s.parent == UINT32_MAX && text.starts_with(who)) text.erase(0, who.size());
  return note.empty() ? text : text + " [" + note + "]";
}

}  // namespace culprit::waitgraph
