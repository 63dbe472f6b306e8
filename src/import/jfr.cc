// SPDX-License-Identifier: Apache-2.0
//
// Java Flight Recorder: waits of Java threads with their stacks, and samples of
// running ones. There are no context switches in it, so waits do not tile the
// threads: a wait is there if it was longer than the recording's threshold. Who
// ended it is recorded for monitors (the owner before, the notifier); sleeps and
// waits that timed out end by the [timer], input and output by [net] or [disk];
// who unparked a thread is not known.
//
// Samples of native methods are left out: the recorder takes them of threads
// that sleep in native code as of those that run there. Memory: one chunk (some
// 12 MB unless set otherwise) and what its pools hold.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/importers.h"
#include "import/jfr_chunk.h"
#include "import/jfr_pools.h"
#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kMaxChunkBytes = uint64_t{1} << 30;
constexpr int64_t kDefaultPeriodNs = 20'000'000;  // of the recorder's own settings
constexpr int64_t kMaxSpanNs = int64_t{1} << 60;

enum class JfrMeaning : uint8_t { kWait, kSample, kNativeSample, kSetting, kMachine };
enum class JfrEnder : uint8_t { kUnknown, kThread, kTimer, kNet, kDisk };

struct JfrKind {
  std::string_view name;
  JfrMeaning meaning = JfrMeaning::kWait;
  JfrEnder ender = JfrEnder::kUnknown;
};
constexpr JfrKind kJfrKinds[] = {
    {"jdk.JavaMonitorEnter", JfrMeaning::kWait, JfrEnder::kThread},
    {"jdk.JavaMonitorWait", JfrMeaning::kWait, JfrEnder::kThread},
    {"jdk.ThreadPark", JfrMeaning::kWait, JfrEnder::kUnknown},
    {"jdk.ThreadSleep", JfrMeaning::kWait, JfrEnder::kTimer},
    {"jdk.SocketRead", JfrMeaning::kWait, JfrEnder::kNet},
    {"jdk.SocketWrite", JfrMeaning::kWait, JfrEnder::kNet},
    {"jdk.FileRead", JfrMeaning::kWait, JfrEnder::kDisk},
    {"jdk.FileWrite", JfrMeaning::kWait, JfrEnder::kDisk},
    {"jdk.FileForce", JfrMeaning::kWait, JfrEnder::kDisk},
    {"jdk.ExecutionSample", JfrMeaning::kSample},
    {"jdk.NativeMethodSample", JfrMeaning::kNativeSample},
    {"jdk.ActiveSetting", JfrMeaning::kSetting},
    {"jdk.JVMInformation", JfrMeaning::kMachine},
};

enum JfrSlot : size_t {
  kJfrStart,
  kJfrDuration,
  kJfrThread,
  kJfrStack,
  kJfrPeer,
  kJfrTimedOut,
  kJfrFirst,   // of a setting: the class; of a machine: the pid
  kJfrSecond,  // of a setting: its value; of a machine: its arguments
};
constexpr JfrWant kEventWants[] = {{"startTime", kJfrStart},    {"duration", kJfrDuration},
                                   {"eventThread", kJfrThread}, {"sampledThread", kJfrThread},
                                   {"stackTrace", kJfrStack},   {"previousOwner", kJfrPeer},
                                   {"notifier", kJfrPeer},      {"timedOut", kJfrTimedOut}};
constexpr JfrWant kSettingWants[] = {{"id", kJfrFirst}, {"name", kJfrStack}, {"value", kJfrSecond}};
constexpr JfrWant kMachineWants[] = {{"pid", kJfrFirst},
                                     {"javaArguments", kJfrSecond},
                                     {"jvmName", kJfrStack},
                                     {"jvmVersion", kJfrPeer}};

std::span<const JfrWant> WantsOf(JfrMeaning meaning) {
  if (meaning == JfrMeaning::kSetting) return kSettingWants;
  if (meaning == JfrMeaning::kMachine) return kMachineWants;
  return kEventWants;
}

// "20 ms", "everyChunk"
std::optional<int64_t> PeriodOf(std::string text) {
  std::erase(text, ' ');
  return ParseDuration(text);
}

class JfrImport {
 public:
  JfrImport(trace::TraceWriter& writer, Diagnostics& diagnostics)
      : writer_(writer), diagnostics_(diagnostics) {}

  Status Chunk(std::string_view chunk, uint64_t offset);
  Status Finish();
  uint64_t events() const { return events_; }

 private:
  struct Type {
    JfrKind kind;
    JfrLayout layout;
  };

  void ReadPools(JfrPools& pools);
  std::unordered_map<int64_t, Type> TypesOf(const JfrSchema& schema) const;
  void ReadSchema(JfrSchema& schema);
  void Machine(const JfrPools& pools);
  void Setting(const JfrPools& pools, const std::unordered_map<int64_t, Type>& types);
  void Wait(const JfrKind& kind, const JfrLayout& layout, JfrPools& pools, uint64_t offset);
  void Sample(JfrPools& pools);
  std::optional<int64_t> SpanNs(int64_t ticks) const;
  std::optional<int64_t> TimeOf(int64_t ticks) const;
  trace::ThreadId ThreadOf(const JfrPools& pools, int64_t entry);
  trace::ThreadId Device(std::string_view name);
  void Cover(int64_t begin_ns, int64_t end_ns);

  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  JfrChunkHead head_;
  std::string_view chunk_;
  JfrRow row_;
  std::vector<trace::Event> made_;  // of this chunk
  std::map<std::pair<int64_t, int64_t>, trace::ThreadId> threads_;
  std::map<std::string, trace::ThreadId, std::less<>> devices_;
  std::optional<trace::ProcessId> process_;
  std::optional<int64_t> begin_ns_;
  int64_t end_ns_ = 0;
  int64_t period_ns_ = kDefaultPeriodNs;
  bool has_samples_ = false;
  bool has_wakers_ = false;
  uint64_t events_ = 0;
  uint64_t unused_ = 0;
  uint64_t native_samples_ = 0;
  uint64_t chunks_ = 0;
};

std::optional<int64_t> JfrImport::SpanNs(int64_t ticks) const {
  const int64_t seconds = ticks / head_.ticks_per_second;
  if (seconds > kMaxSpanNs / kNsPerSecond || seconds < -kMaxSpanNs / kNsPerSecond)
    return std::nullopt;
  const int64_t rest = ticks % head_.ticks_per_second;
  return seconds * kNsPerSecond + rest * kNsPerSecond / head_.ticks_per_second;
}

std::optional<int64_t> JfrImport::TimeOf(int64_t ticks) const {
  if ((ticks < 0) != (head_.start_ticks < 0)) return std::nullopt;
  const auto since_ns = SpanNs(ticks - head_.start_ticks);
  if (!since_ns) return std::nullopt;
  return head_.start_ns + *since_ns;
}

void JfrImport::Cover(int64_t begin_ns, int64_t end_ns) {
  end_ns_ = begin_ns_ ? std::max(end_ns_, end_ns) : end_ns;
  begin_ns_ = std::min(begin_ns_.value_or(begin_ns), begin_ns);
}

trace::ThreadId JfrImport::Device(std::string_view name) {
  const auto it = devices_.find(name);
  if (it != devices_.end()) return it->second;
  trace::Dictionary& dictionary = writer_.dictionary();
  const trace::ThreadId id =
      dictionary.AddThread({.name = dictionary.Intern(name), .kind = trace::ThreadKind::kDevice});
  return devices_[std::string(name)] = id;
}

// Java's own ids are never reused, those of the system are.
trace::ThreadId JfrImport::ThreadOf(const JfrPools& pools, int64_t entry) {
  const JfrThread* thread = pools.Thread(entry);
  if (thread == nullptr) return {};
  const auto [it, is_new] = threads_.try_emplace({thread->os_id, thread->java_id});
  if (!is_new) return it->second;
  trace::Dictionary& dictionary = writer_.dictionary();
  if (!process_) process_ = dictionary.AddProcess({.name = dictionary.Intern("java")});
  it->second = dictionary.AddThread({.tid = thread->os_id > 0 ? thread->os_id : thread->java_id,
                                     .process = *process_,
                                     .name = dictionary.Intern(thread->name)});
  return it->second;
}

void JfrImport::Machine(const JfrPools& pools) {
  trace::Dictionary& dictionary = writer_.dictionary();
  if (!process_) process_ = dictionary.AddProcess({.name = dictionary.Intern("java")});
  trace::Process& process = dictionary.process(*process_);
  process.pid = row_.numbers[kJfrFirst];
  const std::string arguments = pools.Text(row_.strings[kJfrSecond]);
  process.command_line = dictionary.Intern(arguments);
  trace::Metadata& metadata = writer_.metadata();
  metadata.app = arguments.substr(0, arguments.find(' '));
  metadata.properties["jfr.jvm"] = pools.Text(row_.strings[kJfrStack]);
  metadata.properties["jfr.jvm_version"] = pools.Text(row_.strings[kJfrPeer]);
}

void JfrImport::Setting(const JfrPools& pools, const std::unordered_map<int64_t, Type>& types) {
  const auto type = types.find(row_.numbers[kJfrFirst]);
  if (type == types.end()) return;
  const JfrKind& kind = type->second.kind;
  const std::string name = pools.Text(row_.strings[kJfrStack]);
  const std::string value = pools.Text(row_.strings[kJfrSecond]);
  if (kind.meaning == JfrMeaning::kSample && name == "period") {
    period_ns_ = std::clamp<int64_t>(PeriodOf(value).value_or(period_ns_), 1, kMaxSpanNs);
  }
  if (kind.meaning == JfrMeaning::kWait && name == "threshold") {
    writer_.metadata().properties["threshold." + std::string(kind.name)] = value;
  }
}

void JfrImport::Wait(const JfrKind& kind, const JfrLayout& layout, JfrPools& pools,
                     uint64_t offset) {
  const auto begin_ns = TimeOf(row_.numbers[kJfrStart]);
  const auto dur_ns = SpanNs(row_.numbers[kJfrDuration]);
  const trace::ThreadId thread = ThreadOf(pools, row_.numbers[kJfrThread]);
  if (!begin_ns || !dur_ns || *dur_ns < 0 || !thread.valid()) {
    diagnostics_.Count("wait without a time or a thread", 1, offset);
    return;
  }
  trace::ThreadId peer;
  const bool timed_out = layout.Has(kJfrTimedOut) && row_.numbers[kJfrTimedOut] != 0;
  if (kind.ender == JfrEnder::kTimer || timed_out) {
    peer = Device("[timer]");
  } else if (kind.ender == JfrEnder::kNet) {
    peer = Device("[net]");
  } else if (kind.ender == JfrEnder::kDisk) {
    peer = Device("[disk]");
  } else if (kind.ender == JfrEnder::kThread && row_.numbers[kJfrPeer] != 0) {
    peer = ThreadOf(pools, row_.numbers[kJfrPeer]);
  }
  const uint8_t unknown = trace::kWakerUnknown;
  made_.push_back({.time_ns = *begin_ns,
                   .dur_ns = *dur_ns,
                   .thread = thread,
                   .peer = peer,
                   .stack = pools.Stack(row_.numbers[kJfrStack]),
                   .kind = trace::EventKind::kWait,
                   .flags = peer.valid() ? uint8_t{0} : unknown});
  Cover(*begin_ns, *begin_ns + *dur_ns);
  if (!peer.valid()) return;
  has_wakers_ = true;
  made_.push_back({.time_ns = *begin_ns + *dur_ns,
                   .thread = peer,
                   .peer = thread,
                   .kind = trace::EventKind::kUnwait});
}

void JfrImport::Sample(JfrPools& pools) {
  const auto time_ns = TimeOf(row_.numbers[kJfrStart]);
  const trace::ThreadId thread = ThreadOf(pools, row_.numbers[kJfrThread]);
  if (!time_ns || !thread.valid()) {
    diagnostics_.Count("sample without a time or a thread");
    return;
  }
  has_samples_ = true;
  made_.push_back({.time_ns = *time_ns,
                   .thread = thread,
                   .stack = pools.Stack(row_.numbers[kJfrStack]),
                   .kind = trace::EventKind::kRunning});
}

// The metadata's place stands in the head, but not before a chunk is finished.
void JfrImport::ReadSchema(JfrSchema& schema) {
  size_t offset = kJfrHeadBytes;
  if (head_.metadata_offset >= kJfrHeadBytes && head_.metadata_offset < chunk_.size()) {
    offset = static_cast<size_t>(head_.metadata_offset);
  }
  while (const auto event = ReadJfrEvent(chunk_, head_.compressed, offset)) {
    if (event->class_id != kJfrMetadataClass) continue;
    if (!schema.Add(event->fields, head_.compressed)) {
      diagnostics_.Count("metadata that could not be read whole", 1, event->offset);
    }
    if (head_.metadata_offset != 0) break;
  }
}

void JfrImport::ReadPools(JfrPools& pools) {
  size_t offset = kJfrHeadBytes;
  while (const auto event = ReadJfrEvent(chunk_, head_.compressed, offset)) {
    if (event->class_id != kJfrPoolClass) continue;
    if (!pools.Add(event->fields, head_.compressed)) {
      diagnostics_.Count("constant pool that could not be read whole", 1, event->offset);
    }
  }
  if (offset < chunk_.size()) {
    diagnostics_.Count("event that does not fit its chunk, the rest is not read", 1, offset);
  }
}

std::unordered_map<int64_t, JfrImport::Type> JfrImport::TypesOf(const JfrSchema& schema) const {
  std::unordered_map<int64_t, Type> types;
  for (const auto& [id, found] : schema.classes()) {
    for (const JfrKind& kind : kJfrKinds) {
      if (kind.name == found.name) {
        types[id] = {kind, JfrLayout(schema, id, WantsOf(kind.meaning))};
      }
    }
  }
  return types;
}

Status JfrImport::Chunk(std::string_view chunk, uint64_t chunk_offset) {
  ++chunks_;
  head_ = *ReadJfrChunkHead(chunk);
  chunk_ = chunk;
  if (head_.start_ns < 0 || head_.start_ns > kMaxSpanNs * 2) {
    diagnostics_.Count("chunk of an impossible time", 1, chunk_offset);
    return {};
  }
  JfrSchema schema;
  ReadSchema(schema);
  JfrPools pools(schema, writer_.dictionary());
  ReadPools(pools);
  const auto types = TypesOf(schema);
  made_.clear();
  size_t offset = kJfrHeadBytes;
  while (const auto event = ReadJfrEvent(chunk_, head_.compressed, offset)) {
    if (event->class_id == kJfrMetadataClass || event->class_id == kJfrPoolClass) continue;
    ++events_;
    const auto type = types.find(event->class_id);
    if (type == types.end()) {
      ++unused_;
      continue;
    }
    JfrReader reader(event->fields, head_.compressed);
    const auto& [kind, layout] = type->second;
    if (!layout.Read(reader, row_)) {
      diagnostics_.Count("event shorter than its description", 1, chunk_offset + event->offset);
      continue;
    }
    if (kind.meaning == JfrMeaning::kWait) Wait(kind, layout, pools, chunk_offset + event->offset);
    if (kind.meaning == JfrMeaning::kSample) Sample(pools);
    if (kind.meaning == JfrMeaning::kNativeSample) ++native_samples_;
    if (kind.meaning == JfrMeaning::kSetting) Setting(pools, types);
    if (kind.meaning == JfrMeaning::kMachine) Machine(pools);
  }
  const int64_t dur_ns = std::clamp<int64_t>(head_.dur_ns, 0, kMaxSpanNs);
  Cover(head_.start_ns, head_.start_ns + dur_ns);
  // The period may be told after samples of the same chunk.
  for (trace::Event& event : made_) {
    if (event.kind != trace::EventKind::kRunning) continue;
    event.dur_ns = period_ns_;
    Cover(event.time_ns, event.end_ns());
  }
  trace::SortByTime(made_);
  for (const trace::Event& event : made_) CULPRIT_TRY(writer_.Add(event));
  return {};
}

Status JfrImport::Finish() {
  trace::Metadata& metadata = writer_.metadata();
  metadata.source = "Java Flight Recorder";
  metadata.clock = "wall";
  metadata.begin_ns = begin_ns_.value_or(0);
  metadata.end_ns = end_ns_;
  metadata.wall_start_ns = metadata.begin_ns;
  metadata.has_wakers = has_wakers_;
  metadata.sample_period_ns = has_samples_ ? period_ns_ : 0;
  metadata.properties["jfr.chunks"] = std::to_string(chunks_);
  metadata.properties["jfr.events"] = std::to_string(events_);
  metadata.properties["jfr.events_unused"] = std::to_string(unused_);
  metadata.properties["jfr.native_samples_unused"] = std::to_string(native_samples_);
  return {};
}

Match SniffJfr(const Source& source, std::string_view head) {
  return !source.is_folder() && head.starts_with(kJfrMagic) ? Match::kCertain : Match::kNo;
}

// A chunk that was never finished has no size: it is what is left of the file.
Status ReadChunks(const Bytes& bytes, JfrImport& import, Diagnostics& diagnostics) {
  std::string chunk;
  for (uint64_t offset = 0; offset < bytes.size();) {
    CULPRIT_TRY(bytes.ReadAt(offset, kJfrHeadBytes, chunk));
    const auto head = ReadJfrChunkHead(chunk);
    if (!head) {
      diagnostics.Count("no chunk where one should begin, the rest is not read", 1, offset);
      break;
    }
    if (head->major != 2) {
      return Error{.message = "recorded in version " + std::to_string(head->major) +
                              " of the format; only version 2 is read",
                   .offset = offset,
                   .hint = "record with a JDK 9 or newer, or OpenJDK 8u262 or newer"};
    }
    const uint64_t rest = bytes.size() - offset;
    uint64_t size = head->size < kJfrHeadBytes ? rest : head->size;
    if (size > rest) {
      diagnostics.Count("file ends inside a chunk", 1, offset);
      size = rest;
    }
    if (size > kMaxChunkBytes) {
      return Error{.message = "a chunk of more than 1 GB",
                   .offset = offset,
                   .hint = "record with a smaller maxchunksize"};
    }
    CULPRIT_TRY(bytes.ReadAt(offset, static_cast<size_t>(size), chunk));
    CULPRIT_TRY(import.Chunk(chunk, offset));
    offset += size;
  }
  return {};
}

Status ReadJfr(const Source& source, const ImportOptions&, trace::TraceWriter& writer,
               Diagnostics& diagnostics) {
  JfrImport import(writer, diagnostics);
  Status status = ReadChunks(source.bytes(), import, diagnostics);
  if (status.ok() && import.events() == 0) status = Error{.message = "no event in it"};
  if (status.ok()) return import.Finish();
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer JfrImporter() {
  return {.name = "jfr", .summary = "Java Flight Recorder", .sniff = SniffJfr, .read = ReadJfr};
}

}  // namespace culprit::import_
