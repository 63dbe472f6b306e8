// SPDX-License-Identifier: Apache-2.0
// The part of TracepointFacts that is about stacks and traced functions.
#include <algorithm>

#include "import/importer.h"
#include "import/tracepoint_facts.h"

namespace culprit::import_ {
namespace {

using trace::EventKind;

constexpr size_t kMaxOpenCalls = 512;
constexpr std::string_view kUnknownModule = "[unknown]";

}  // namespace

// Leaves the frames in frames_, caller first.
void TracepointFacts::ReadStack(std::string_view record, Kind kind) {
  frames_.clear();
  const Handler* handler = kind == Kind::kKernelStack ? kernel_stack_ : user_stack_;
  if (handler == nullptr || record.empty() || handler->fields[0] == nullptr) return;
  // The format says caller[8]; the record holds as many as there were. A list
  // with room left ends with all bits set (before 5.x) or with zero.
  const size_t at = std::min<size_t>(handler->fields[0]->offset, record.size());
  const std::string_view list = record.substr(at);
  size_t count = std::min(list.size() / long_bytes_, kMaxStackFrames);
  if (handler->fields[1] != nullptr) {
    count = std::min<size_t>(count, RecordView(record, order_).Unsigned(handler->fields[1]));
  }
  const uint64_t none = long_bytes_ == 4 ? UINT32_MAX : UINT64_MAX;
  addresses_.clear();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t address = LoadUnsigned(list, i * long_bytes_, long_bytes_, order_);
    if (address == none || address == 0) break;
    addresses_.push_back(address);
  }
  if (kind == Kind::kKernelStack) {
    kernel_.Frames(addresses_, frames_);
    return;
  }
  trace::Dictionary& dictionary = writer_.dictionary();
  const trace::ModuleId module =
      dictionary.InternModule({.name = dictionary.Intern(kUnknownModule)});
  for (size_t i = addresses_.size(); i-- > 0;) {
    frames_.push_back(dictionary.InternFrame({.module = module, .offset = addresses_[i]}));
  }
}

trace::StackId TracepointFacts::StackOf(const TracepointRecord& record) {
  trace::StackId stack;
  for (const Kind kind : {Kind::kUserStack, Kind::kKernelStack}) {
    ReadStack(kind == Kind::kUserStack ? record.user_stack : record.kernel_stack, kind);
    for (const trace::FrameId frame : frames_) {
      stack = writer_.dictionary().InternStack(stack, frame);
    }
  }
  return stack;
}

// A plain function event has no end: it is a call of no duration.
Status TracepointFacts::Function(const Fields& fields, const RecordView& view,
                                 const TracepointRecord& record, int64_t tid) {
  trace::Dictionary& dictionary = writer_.dictionary();
  trace::StackId stack;
  if (fields[1] != nullptr) {
    stack = dictionary.InternStack(stack, kernel_.FrameAt(view.Unsigned(fields[1])));
  }
  stack = dictionary.InternStack(stack, kernel_.FrameAt(view.Unsigned(fields[0])));
  return writer_.Add({.time_ns = record.time_ns,
                      .thread = assembler_.ThreadOf(tid),
                      .stack = stack,
                      .cpu = record.cpu,
                      .kind = EventKind::kCall});
}

Status TracepointFacts::GraphEntry(uint64_t address, const TracepointRecord& record, int64_t tid) {
  std::vector<OpenCall>& open = calls_[tid];
  if (open.size() >= kMaxOpenCalls) {
    diagnostics_.Count("function call nested too deeply, ignored", 1, record.offset);
    return {};
  }
  const trace::StackId parent = open.empty() ? trace::StackId() : open.back().stack;
  const trace::StackId stack = writer_.dictionary().InternStack(parent, kernel_.FrameAt(address));
  open.push_back({.time_ns = record.time_ns, .address = address, .stack = stack});
  return {};
}

Status TracepointFacts::GraphExit(uint64_t address, const TracepointRecord& record, int64_t tid) {
  std::vector<OpenCall>& open = calls_[tid];
  const auto it = std::find_if(open.rbegin(), open.rend(),
                               [&](const OpenCall& call) { return call.address == address; });
  if (it == open.rend()) {
    diagnostics_.Count("function exit without its entry", 1, record.offset);
    return {};
  }
  // Calls inside it whose exits were lost end no later than it does.
  const size_t keep = static_cast<size_t>(open.rend() - it) - 1;
  if (open.size() - keep > 1) {
    diagnostics_.Count("function entry without its exit", open.size() - keep - 1, record.offset);
  }
  const OpenCall call = open[keep];
  open.resize(keep);
  const int64_t end_ns = std::max(record.time_ns, call.time_ns);
  return writer_.Add({.time_ns = call.time_ns,
                      .dur_ns = end_ns - call.time_ns,
                      .thread = assembler_.ThreadOf(tid),
                      .stack = call.stack,
                      .cpu = record.cpu,
                      .kind = EventKind::kCall});
}

Status TracepointFacts::Finish() {
  std::vector<int64_t> tids;
  for (const auto& [tid, open] : calls_) tids.push_back(tid);
  std::sort(tids.begin(), tids.end());
  for (const int64_t tid : tids) {
    for (const OpenCall& call : calls_[tid]) {
      CULPRIT_TRY(writer_.Add({.time_ns = call.time_ns,
                               .dur_ns = std::max<int64_t>(0, last_ns_ - call.time_ns),
                               .thread = assembler_.ThreadOf(tid),
                               .stack = call.stack,
                               .kind = EventKind::kCall,
                               .flags = trace::kUnfinished}));
    }
  }
  calls_.clear();
  return {};
}

}  // namespace culprit::import_
