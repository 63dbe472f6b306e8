// SPDX-License-Identifier: Apache-2.0
//
// A pprof profile (profile.proto, compressed with gzip) of one kind of event.
// Each sample is a distinct stack with how often and how long:
//
//   wait      waits/count, delay/nanoseconds
//   running   samples/count, cpu/nanoseconds
//   ready     delays/count, ready/nanoseconds
//   hardware  requests/count, service/nanoseconds
//   syscall   syscalls/count, syscall/nanoseconds
//   call      calls/count, call/nanoseconds
//   unwait    wakeups/count
//
// A location is a frame of the trace, a mapping one of its modules with its
// build id; addresses are offsets in the module. A frame without a name is a
// location without a line, so that pprof can look it up in the binary. Events
// without a stack are the function [no stack] or [not sampled]: the samples
// sum to the totals of the kind. With threads, samples have the labels process,
// pid, thread and tid.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/string_table.h"
#include "export/chunked_sink.h"
#include "export/event_walk.h"
#include "export/gzip_sink.h"
#include "export/proto_writer.h"
#include "export/stack_totals.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;
using trace::EventKind;
using trace::Frame;

// Field numbers of profile.proto.
enum ProfileField : uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kString = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kDefaultSampleType = 14,
};

struct ValueNames {
  std::string_view count;
  std::string_view time;  // empty: takes no time
};

ValueNames NamesOf(EventKind kind) {
  static constexpr std::array<ValueNames, trace::kEventKinds> kNames = {{{"samples", "cpu"},
                                                                         {"waits", "delay"},
                                                                         {"wakeups", ""},
                                                                         {"delays", "ready"},
                                                                         {"requests", "service"},
                                                                         {"syscalls", "syscall"},
                                                                         {"calls", "call"},
                                                                         {"markers", ""}}};
  return kNames[static_cast<size_t>(kind)];
}

class PprofProfile {
 public:
  PprofProfile(const trace::TraceReader& reader, const StackTotals& totals,
               const std::function<Status(std::string_view)>& write)
      : metadata_(reader.metadata()),
        dictionary_(reader.dictionary()),
        totals_(totals),
        write_(write),
        frame_used_(dictionary_.frames().size(), false),
        module_limit_(dictionary_.modules().size(), 0),
        module_named_(dictionary_.modules().size(), true) {
    strings_.Intern("");  // index 0 must be the empty string
  }

  Status Write(bool threads) {
    CULPRIT_TRY(WriteHead());
    for (const StackTotal& row : totals_.rows) CULPRIT_TRY(WriteSample(row, threads));
    for (size_t i = 0; i < frame_used_.size(); ++i) {
      if (frame_used_[i]) CULPRIT_TRY(WriteLocation(i + 1, dictionary_.frames()[i]));
    }
    for (uint32_t stack : {kNotSampledStack, kNoStack}) {
      if (!pseudo_used_[stack - kNotSampledStack]) continue;
      ProtoWriter line, location;
      CULPRIT_ASSIGN(const uint64_t function, Function(Text(PseudoStackName(stack)), 0));
      location.Uint(1, PseudoLocation(stack)).Message(4, line.Uint(1, function));
      CULPRIT_TRY(Put(kLocation, location));
    }
    CULPRIT_TRY(WriteMappings());
    for (size_t i = 0; i < strings_.size(); ++i) {
      ProtoWriter field;
      CULPRIT_TRY(write_(field.Bytes(kString, strings_.Get(StringId(i))).bytes()));
    }
    return {};
  }

 private:
  uint64_t Text(std::string_view text) { return strings_.Intern(Utf8Text(text)).value; }
  uint64_t PseudoLocation(uint32_t stack) const {
    return frame_used_.size() + 1 + (stack - kNotSampledStack);
  }
  Status Put(uint32_t field, const ProtoWriter& message) {
    ProtoWriter out;
    return write_(out.Message(field, message).bytes());
  }

  Status WriteHead() {
    const ValueNames names = NamesOf(totals_.kind);
    ProtoWriter count, time, rest;
    CULPRIT_TRY(Put(kSampleType, count.Uint(1, Text(names.count)).Uint(2, Text("count"))));
    if (!names.time.empty()) {
      time.Uint(1, Text(names.time)).Uint(2, Text("nanoseconds"));
      CULPRIT_TRY(Put(kSampleType, time));
      rest.Uint(kDefaultSampleType, Text(names.time));
    }
    if (metadata_.wall_start_ns != 0) rest.Int(kTimeNanos, metadata_.wall_start_ns);
    if (metadata_.end_ns > metadata_.begin_ns) {
      rest.Uint(kDurationNanos, static_cast<uint64_t>(metadata_.end_ns) -
                                    static_cast<uint64_t>(metadata_.begin_ns));
    }
    if (totals_.kind == EventKind::kRunning && metadata_.sample_period_ns > 0) {
      rest.Message(kPeriodType, time).Int(kPeriod, metadata_.sample_period_ns);
    }
    return write_(rest.bytes());
  }

  Status WriteSample(const StackTotal& row, bool threads) {
    std::vector<uint64_t> locations;
    if (!PseudoStackName(row.stack).empty()) {
      pseudo_used_[row.stack - kNotSampledStack] = true;
      locations.push_back(PseudoLocation(row.stack));
    } else {
      for (trace::StackId at(row.stack); at.valid();) {
        const trace::StackNode& node = dictionary_.stacks()[at.value];
        frame_used_[node.frame.value] = true;
        locations.push_back(uint64_t{node.frame.value} + 1);
        at = node.parent;
      }
    }
    std::vector<uint64_t> values = {row.events};
    if (!totals_.counts_events()) values.push_back(static_cast<uint64_t>(row.time_ns));
    ProtoWriter sample;
    sample.Packed(1, locations).Packed(2, values);
    if (threads && row.thread.valid()) AddLabels(dictionary_.threads()[row.thread.value], sample);
    return Put(kSample, sample);
  }

  void AddLabels(const trace::Thread& thread, ProtoWriter& sample) {
    const auto text = [&](std::string_view key, std::string_view value) {
      if (value.empty()) return;
      ProtoWriter label;
      sample.Message(3, label.Uint(1, Text(key)).Uint(2, Text(value)));
    };
    const auto number = [&](std::string_view key, int64_t value) {
      if (value < 0) return;
      ProtoWriter label;
      sample.Message(3, label.Uint(1, Text(key)).Int(3, value));
    };
    if (thread.process.valid()) {
      const trace::Process& process = dictionary_.processes()[thread.process.value];
      text("process", dictionary_.Text(process.name));
      number("pid", process.pid);
    }
    text("thread", dictionary_.Text(thread.name));
    number("tid", thread.tid);
  }

  Status WriteLocation(uint64_t id, const Frame& frame) {
    ProtoWriter location;
    location.Uint(1, id);
    if (frame.module.valid()) {
      uint64_t& limit = module_limit_[frame.module.value];
      limit = std::max(limit, frame.offset == UINT64_MAX ? frame.offset : frame.offset + 1);
      if (!frame.function.valid()) module_named_[frame.module.value] = false;
      location.Uint(2, uint64_t{frame.module.value} + 1).Uint(3, frame.offset);
    }
    if (frame.function.valid() || !frame.module.valid()) {
      CULPRIT_ASSIGN(const uint64_t function, Function(Text(dictionary_.Text(frame.function)),
                                                       Text(dictionary_.Text(frame.file))));
      ProtoWriter line;
      line.Uint(1, function);
      if (frame.line != 0) line.Uint(2, frame.line);
      location.Message(4, line);
    }
    return Put(kLocation, location);
  }

  // Functions are the same if name and file are.
  Result<uint64_t> Function(uint64_t name, uint64_t file) {
    const auto [it, is_new] = functions_.emplace(name << 32 | file, functions_.size() + 1);
    if (is_new) {
      ProtoWriter function;
      function.Uint(1, it->second).Uint(2, name).Uint(3, name);
      if (file != 0) function.Uint(4, file);
      CULPRIT_TRY(Put(kFunction, function));
    }
    return it->second;
  }

  Status WriteMappings() {
    for (size_t i = 0; i < module_limit_.size(); ++i) {
      if (module_limit_[i] == 0) continue;
      const trace::Module& module = dictionary_.modules()[i];
      ProtoWriter mapping;
      mapping.Uint(1, i + 1).Uint(3, module_limit_[i]);
      const std::string_view path = dictionary_.Text(module.path);
      mapping.Uint(5, Text(path.empty() ? dictionary_.Text(module.name) : path));
      const std::string_view build_id = dictionary_.Text(module.build_id);
      if (!build_id.empty()) mapping.Uint(6, Text(build_id));
      mapping.Uint(7, module_named_[i] ? 1 : 0);
      CULPRIT_TRY(Put(kMapping, mapping));
    }
    return {};
  }

  const trace::Metadata& metadata_;
  const Dictionary& dictionary_;
  const StackTotals& totals_;
  const std::function<Status(std::string_view)>& write_;
  StringTable strings_;
  std::vector<bool> frame_used_;
  std::array<bool, 2> pseudo_used_ = {};
  std::vector<uint64_t> module_limit_;  // one past the highest address; 0: not used
  std::vector<bool> module_named_;
  std::unordered_map<uint64_t, uint64_t> functions_;
};

}  // namespace

Result<Summary> ExportPprof(const trace::TraceReader& reader, const Options& options,
                            const Sink& sink) {
  CULPRIT_ASSIGN(StackTotals totals, SumByStack(reader, options, options.threads));
  GzipSink gzip(sink);
  const Sink compress = [&](std::string_view bytes) { return gzip.Write(bytes); };
  ChunkedSink chunks(compress);
  const std::function<Status(std::string_view)> write = [&](std::string_view bytes) {
    return chunks.Write(bytes);
  };
  CULPRIT_TRY(PprofProfile(reader, totals, write).Write(options.threads));
  CULPRIT_TRY(chunks.Flush());
  CULPRIT_TRY(gzip.Finish());
  return totals.summary;
}

}  // namespace culprit::export_
