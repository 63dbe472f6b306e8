// SPDX-License-Identifier: Apache-2.0
//
// pprof profiles as traces. A profile has stacks and amounts of time but no
// times: its samples are laid one after another on one made-up thread, which
// the metadata and the diagnostics say. CPU and wall-clock profiles become
// running events, contention (mutex, block, delay) profiles become waits whose
// waker is not known. A sample that stands for n becomes n events of equal
// length, so that 1,000 short waits do not look like one long one; beyond
// kMaxEvents events all samples get proportionally fewer.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/importers.h"
#include "import/pprof_profile.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kMaxEvents = 200'000;
constexpr int64_t kMaxTotalNs = INT64_MAX / 4;
constexpr std::string_view kLayout = "synthetic: a profile has no times";

struct Unit {
  std::string_view name;
  int64_t ns;
};
constexpr std::array<Unit, 10> kTimeUnits = {{{"nanoseconds", 1},
                                              {"nanosecond", 1},
                                              {"ns", 1},
                                              {"microseconds", 1'000},
                                              {"us", 1'000},
                                              {"milliseconds", 1'000'000},
                                              {"ms", 1'000'000},
                                              {"seconds", 1'000'000'000},
                                              {"second", 1'000'000'000},
                                              {"s", 1'000'000'000}}};
constexpr std::array<std::string_view, 9> kWaitTypes = {
    "delay", "contention", "lock", "mutex", "block", "wait", "off", "sync", "park"};

// 0: not a unit of time.
int64_t NanosecondsOf(std::string_view unit) {
  for (const Unit& known : kTimeUnits) {
    if (known.name == unit) return known.ns;
  }
  return 0;
}

bool IsWait(std::string_view type) {
  return std::any_of(kWaitTypes.begin(), kWaitTypes.end(),
                     [&](std::string_view word) { return type.starts_with(word); });
}

// Which of a sample's values is its time, and which its number.
struct Meaning {
  size_t time_index = 0;
  int64_t unit_ns = 0;
  std::optional<size_t> count_index;
  bool wait = false;
  std::string_view type;
};

std::optional<Meaning> MeaningOf(const Profile& profile) {
  Meaning meaning;
  bool preferred = false;
  for (size_t i = 0; i < profile.value_types.size(); ++i) {
    const Profile::ValueType& type = profile.value_types[i];
    if (type.unit == "count" && !meaning.count_index) meaning.count_index = i;
    const int64_t unit_ns = NanosecondsOf(type.unit);
    if (unit_ns == 0 || preferred) continue;
    meaning.time_index = i;
    meaning.unit_ns = unit_ns;
    meaning.type = type.type;
    preferred = type.type == profile.default_type;
  }
  // "samples/count" with a period in time.
  const int64_t period_ns = NanosecondsOf(profile.period_type.unit);
  if (meaning.unit_ns == 0 && meaning.count_index && period_ns > 0 && profile.period > 0 &&
      profile.period <= kMaxTotalNs / period_ns) {
    meaning.time_index = *meaning.count_index;
    meaning.unit_ns = profile.period * period_ns;
    meaning.type = profile.period_type.type;
  }
  if (meaning.unit_ns == 0) return std::nullopt;
  meaning.wait = IsWait(meaning.type);
  return meaning;
}

bool IsKernel(std::string_view path) {
  return path.starts_with("[kernel") || path.starts_with("[guest.kernel") || path == "/vmlinux";
}

// Locations to frames of the trace, each made once.
class FrameMaker {
 public:
  FrameMaker(const Profile& profile, const ImportOptions& options, trace::Dictionary& dictionary)
      : profile_(profile),
        symbols_(options.symbols),
        dictionary_(dictionary),
        symbolizer_({.sysroot = options.sysroot}),
        made_(profile.locations.size()) {}

  trace::StackId StackOf(const Profile::Sample& sample) {
    trace::StackId stack;
    const auto locations = profile_.StackOf(sample);
    for (size_t i = locations.size(); i > 0; --i) {
      for (const trace::FrameId frame : FramesOf(locations[i - 1])) {
        stack = dictionary_.InternStack(stack, frame);
      }
    }
    return stack;
  }
  Diagnostics diagnostics() const { return symbolizer_.diagnostics(); }

 private:
  const std::vector<trace::FrameId>& FramesOf(uint32_t location) {
    std::vector<trace::FrameId>& frames = made_[location];
    if (frames.empty()) Make(profile_.locations[location], frames);
    return frames;
  }

  void Make(const Profile::Location& location, std::vector<trace::FrameId>& frames) {
    trace::Frame frame;
    frame.offset = location.address;
    if (location.mapping != Profile::kNone) {
      const Profile::Mapping& mapping = profile_.mappings[location.mapping];
      frame.module = ModuleOf(location.mapping);
      frame.offset = location.address - mapping.start + mapping.offset;
      if (IsKernel(mapping.path)) frame.flags |= trace::kKernelMode;
    }
    if (!location.lines.empty()) {
      FromLines(location, frame, frames);
    } else if (symbols_ && location.mapping != Profile::kNone && location.address != 0) {
      FromBinary(profile_.mappings[location.mapping], frame, frames);
    } else {
      frames.push_back(dictionary_.InternFrame(frame));
    }
  }

  // The last line is the real function; what comes before was inlined into it.
  void FromLines(const Profile::Location& location, trace::Frame frame,
                 std::vector<trace::FrameId>& frames) {
    for (size_t i = location.lines.size(); i > 0; --i) {
      const Profile::Line& line = location.lines[i - 1];
      trace::Frame named = frame;
      if (line.function != Profile::kNone) {
        const Profile::Function& function = profile_.functions[line.function];
        if (!function.name.empty()) {
          named.function = dictionary_.Intern(symbol::Demangle(function.name));
          named.offset = 0;  // many locations of one function are one frame
        }
        if (!function.file.empty()) named.file = dictionary_.Intern(function.file);
      }
      named.line = line.line;
      if (i < location.lines.size()) named.flags |= trace::kInlined;
      frames.push_back(dictionary_.InternFrame(named));
    }
  }

  void FromBinary(const Profile::Mapping& mapping, const trace::Frame& frame,
                  std::vector<trace::FrameId>& frames) {
    const symbol::ModuleKey key = {std::string(mapping.path), std::string(mapping.build_id)};
    for (const symbol::Symbol& symbol : symbolizer_.Lookup(key, frame.offset, false)) {
      trace::Frame found = frame;
      if (!symbol.function.empty()) found.function = dictionary_.Intern(symbol.function);
      if (!symbol.file.empty()) found.file = dictionary_.Intern(symbol.file);
      found.line = symbol.line;
      if (symbol.function_start != 0 || symbol.inlined) found.offset = symbol.function_start;
      if (symbol.inlined) found.flags |= trace::kInlined;
      frames.push_back(dictionary_.InternFrame(found));
    }
  }

  trace::ModuleId ModuleOf(uint32_t index) {
    const Profile::Mapping& mapping = profile_.mappings[index];
    if (mapping.path.empty()) return {};
    const std::string_view name = IsKernel(mapping.path) ? "[kernel]" : BaseName(mapping.path);
    trace::Module module{.name = dictionary_.Intern(name)};
    module.path = dictionary_.Intern(mapping.path);
    if (!mapping.build_id.empty()) module.build_id = dictionary_.Intern(mapping.build_id);
    return dictionary_.InternModule(module);
  }

  const Profile& profile_;
  bool symbols_;
  trace::Dictionary& dictionary_;
  symbol::Symbolizer symbolizer_;
  std::vector<std::vector<trace::FrameId>> made_;
};

struct Amount {
  int64_t time_ns = 0;
  uint64_t count = 0;
};

// What a sample stands for; nothing if its values make no sense.
std::optional<Amount> AmountOf(const Profile& profile, const Profile::Sample& sample,
                               const Meaning& meaning) {
  const auto values = profile.ValuesOf(sample);
  if (values.size() != profile.value_types.size()) return std::nullopt;
  const int64_t time = values[meaning.time_index];
  const int64_t count = meaning.count_index ? values[*meaning.count_index] : 1;
  if (time < 0 || count < 0 || time > kMaxTotalNs / meaning.unit_ns) return std::nullopt;
  return Amount{time * meaning.unit_ns, std::max<uint64_t>(1, static_cast<uint64_t>(count))};
}

class ProfileWriter {
 public:
  ProfileWriter(const Profile& profile, const Meaning& meaning, trace::TraceWriter& writer,
                Diagnostics& diagnostics)
      : profile_(profile), meaning_(meaning), writer_(writer), diagnostics_(diagnostics) {}

  Status Write(const ImportOptions& options) {
    CountSamples();
    const std::string_view program =
        profile_.mappings.empty() ? std::string_view() : BaseName(profile_.mappings.front().path);
    trace::Dictionary& dictionary = writer_.dictionary();
    const trace::ProcessId process =
        dictionary.AddProcess({.name = dictionary.Intern(program.empty() ? "profile" : program)});
    thread_ = dictionary.AddThread(
        {.tid = 1, .process = process, .name = dictionary.Intern("[profile]")});
    FrameMaker frames(profile_, options, dictionary);
    for (const Profile::Sample& sample : profile_.samples) {
      const auto amount = AmountOf(profile_, sample, meaning_);
      if (!amount || amount->time_ns > kMaxTotalNs - now_ns_) {
        diagnostics_.Count("sample with an impossible value", 1, sample.input_offset);
        continue;
      }
      if (amount->time_ns > 0) CULPRIT_TRY(AddEvents(*amount, frames.StackOf(sample)));
    }
    diagnostics_.Merge(frames.diagnostics());
    diagnostics_.Count("profile without times: its samples are laid one after another");
    SetMetadata(program);
    return {};
  }

 private:
  void CountSamples() {
    for (const Profile::Sample& sample : profile_.samples) {
      const auto amount = AmountOf(profile_, sample, meaning_);
      if (!amount || amount->time_ns == 0) continue;
      total_count_ = std::min<uint64_t>(total_count_ + std::min<uint64_t>(amount->count, 1u << 31),
                                        uint64_t{1} << 62);
    }
  }

  Status AddEvents(const Amount& amount, trace::StackId stack) {
    uint64_t pieces = std::min<uint64_t>(amount.count, 1u << 31);
    if (total_count_ > kMaxEvents) {
      pieces = std::max<uint64_t>(
          1, static_cast<uint64_t>(static_cast<double>(pieces) * static_cast<double>(kMaxEvents) /
                                   static_cast<double>(total_count_)));
    }
    // Nothing is shorter than a nanosecond.
    pieces = std::min(pieces, static_cast<uint64_t>(amount.time_ns));
    const auto whole = static_cast<int64_t>(static_cast<uint64_t>(amount.time_ns) / pieces);
    auto longer = static_cast<uint64_t>(amount.time_ns) % pieces;
    for (uint64_t i = 0; i < pieces; ++i) {
      trace::Event event;
      event.time_ns = now_ns_;
      event.dur_ns = whole + (i < longer ? 1 : 0);
      event.thread = thread_;
      event.stack = stack;
      event.kind = meaning_.wait ? trace::EventKind::kWait : trace::EventKind::kRunning;
      if (meaning_.wait) event.flags = trace::kWakerUnknown;
      CULPRIT_TRY(writer_.Add(event));
      now_ns_ = event.end_ns();
    }
    return {};
  }

  void SetMetadata(std::string_view program) {
    trace::Metadata& metadata = writer_.metadata();
    metadata.source = "pprof";
    metadata.clock = "synthetic";
    metadata.app = program;
    metadata.begin_ns = 0;
    metadata.end_ns = now_ns_;
    metadata.wall_start_ns = std::max<int64_t>(0, profile_.time_ns);
    // The waits tile the one thread; of running samples nobody knows the order.
    metadata.has_switches = meaning_.wait;
    const int64_t period_ns = NanosecondsOf(profile_.period_type.unit);
    if (!meaning_.wait && period_ns > 0 && profile_.period > 0 &&
        profile_.period < kMaxTotalNs / period_ns) {
      metadata.sample_period_ns = profile_.period * period_ns;
    }
    metadata.properties["profile.layout"] = kLayout;
    metadata.properties["profile.type"] = meaning_.type;
    metadata.properties["profile.samples"] = std::to_string(profile_.samples.size());
    if (profile_.duration_ns > 0) {
      metadata.properties["profile.duration_ns"] = std::to_string(profile_.duration_ns);
    }
    if (total_count_ > kMaxEvents) {
      metadata.properties["profile.contracted"] =
          std::to_string(total_count_) + " to about " + std::to_string(kMaxEvents) + " events";
    }
  }

  const Profile& profile_;
  const Meaning& meaning_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  trace::ThreadId thread_;
  int64_t now_ns_ = 0;
  uint64_t total_count_ = 0;
};

Match SniffPprof(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  if (LooksLikePprofLegacy(head)) return Match::kCertain;
  return LooksLikePprofProto(head) ? Match::kLikely : Match::kNo;
}

Error Timeless(const Profile& profile, const std::string& name) {
  std::string types;
  for (const Profile::ValueType& type : profile.value_types) {
    if (!types.empty()) types += ", ";
    types.append(type.type.substr(0, 40)).append("/").append(type.unit.substr(0, 40));
  }
  return Error{.message = "a profile without a value in time: it has " + types,
               .file = name,
               .hint = "import a CPU, wall-clock or contention profile of the same program"};
}

Status ReadPprof(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                 Diagnostics& diagnostics) {
  const Bytes& input = source.bytes();
  if (input.size() > kMaxProfileBytes) {
    return Error{.message = "a profile of more than 1 GB", .file = source.name()};
  }
  std::string bytes;
  CULPRIT_TRY(input.ReadAt(0, input.size(), bytes));
  const bool legacy = LooksLikePprofLegacy(std::string_view(bytes).substr(0, kSniffBytes));
  const auto read = legacy ? ReadPprofLegacy : ReadPprofProto;
  CULPRIT_ASSIGN(const Profile profile, read(std::move(bytes), source.name(), diagnostics));
  const auto meaning = MeaningOf(profile);
  if (!meaning) return Timeless(profile, source.name());
  return ProfileWriter(profile, *meaning, writer, diagnostics).Write(options);
}

}  // namespace

Importer PprofImporter() {
  return {.name = "pprof",
          .summary = "pprof CPU and contention profiles, protobuf and the older formats",
          .sniff = SniffPprof,
          .read = ReadPprof};
}

}  // namespace culprit::import_
