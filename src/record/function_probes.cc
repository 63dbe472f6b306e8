// SPDX-License-Identifier: Apache-2.0
#include "record/function_probes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/bytes.h"
#include "base/text.h"
#include "record/machine.h"
#include "record/process_scan.h"
#include "record/tracefs.h"
#include "record/usdt_argument.h"
#include "symbol/usdt_notes.h"

namespace culprit::record {

// What an interpreter tells. In CPython 3.11 entries are told only while `line` is
// switched on; that is done at a place where hardly anybody comes by, for at its own
// there would be a trap for every line.
struct RuntimeProbes {
  std::string_view name;
  std::string_view provider;
  std::string_view entry;
  std::string_view exit;
  std::string_view also_on;
  std::string_view quiet_place;
  std::string_view prefix;
};

namespace {

// Four megabytes a CPU: a twentieth of a second of a program that does nothing but
// call functions, between two looks.
constexpr size_t kFunctionRingPages = 1024;
constexpr size_t kHoldingPages = 8;
// Hits later than this before a look may still be behind others in another ring.
constexpr int64_t kHitSettleNs = 1'000'000;
constexpr std::string_view kGroupPrefix = "culprit_";

constexpr RuntimeProbes kRuntimes[] = {{.name = "python",
                                        .provider = "python",
                                        .entry = "function__entry",
                                        .exit = "function__return",
                                        .also_on = "line",
                                        .quiet_place = "gc__start",
                                        .prefix = "py::"}};

const RuntimeProbes* FindRuntime(std::string_view name) {
  for (const RuntimeProbes& runtime : kRuntimes) {
    if (runtime.name == name) return &runtime;
  }
  return nullptr;
}

Status AppendTo(const std::string& path, const std::string& line) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", path);
  const ssize_t written = write(fd, line.data(), line.size());
  const Status status =
      written == static_cast<ssize_t>(line.size()) ? Status() : ErrnoError("write to", path);
  close(fd);
  return status;
}

// Events of recorders that were killed: nobody watches them, but they are listed.
void RemoveLeftBehind(const std::string& folder) {
  std::istringstream events(ReadKernelFile(folder + "/uprobe_events"));
  for (std::string text; std::getline(events, text);) {
    const std::string_view line = text;
    const size_t group = line.find(kGroupPrefix);
    const size_t slash = line.find('/');
    if (group != 2 || slash == std::string_view::npos) continue;
    const size_t digits = group + kGroupPrefix.size();
    const std::optional<uint64_t> pid = ParseUnsigned(line.substr(digits, slash - digits));
    if (!pid || kill(static_cast<pid_t>(*pid), 0) == 0 || errno != ESRCH) continue;
    const std::string_view name = line.substr(2, line.find(' ') - 2);
    (void)AppendTo(folder + "/uprobe_events", "-:" + std::string(name) + "\n");
  }
}

std::string PlaceOf(const std::string& path, uint64_t offset, uint64_t counter) {
  std::string place = fmt::format("{}:{:#x}", path, offset);
  if (counter != 0) place += fmt::format("({:#x})", counter);
  return place;
}

// "field:__data_loc char[] NAME;\toffset:16;\tsize:4;" of an event's format.
std::optional<uint32_t> OffsetOfField(std::string_view format, std::string_view name) {
  const size_t field = format.find(fmt::format(" {};", name));
  if (field == std::string_view::npos) return {};
  constexpr std::string_view kOffset = "offset:";
  const size_t at = format.find(kOffset, field);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = format.substr(at + kOffset.size());
  const std::optional<uint64_t> offset = ParseUnsigned(rest.substr(0, rest.find(';')));
  if (!offset || *offset > 4096) return {};
  return static_cast<uint32_t>(*offset);
}

// The text that a field of a raw record tells: its place in the low half, its length
// with the zero byte in the high one.
std::string_view TextAt(std::string_view raw, uint32_t field) {
  if (raw.size() < sizeof(uint32_t) || field > raw.size() - sizeof(uint32_t)) return {};
  ByteReader in(raw.substr(field, sizeof(uint32_t)));
  const uint32_t told = in.U32();
  const size_t at = told & 0xffff;
  const size_t bytes = told >> 16;
  if (at > raw.size() || bytes > raw.size() - at) return {};
  const std::string_view text = raw.substr(at, bytes);
  return text.substr(0, text.find('\0'));
}

Result<PerfRing> WatchEvent(const std::string& folder, int cpu, size_t pages) {
  std::string text = ReadKernelFile(folder + "/id");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::optional<uint64_t> id = ParseUnsigned(text);
  if (!id) return Error{.message = "the kernel did not make the event", .file = folder};
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = *id;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  const int fd = OpenPerfEvent(attr, -1, cpu);
  if (fd < 0) return ErrnoError("watch the probe", folder);
  return PerfRing::Map(fd, pages);
}

Error NoProbes(const RuntimeProbes& runtime, const std::vector<std::string>& files) {
  Error error = {
      .message = fmt::format("there are no probes {}:{}", runtime.provider, runtime.entry),
      .hint = fmt::format("the interpreter must have been built with them (Debian's "
                          "python3 is); --functions {}=FILE names its file",
                          runtime.name)};
  if (files.size() == 1) error.message += " in " + files.front();
  return error;
}

}  // namespace

Result<FunctionRuntime> ParseFunctionRuntime(std::string_view text) {
  const size_t equals = text.find('=');
  FunctionRuntime runtime = {.name = std::string(text.substr(0, equals)), .file = {}};
  if (equals != std::string_view::npos) runtime.file = text.substr(equals + 1);
  if (FindRuntime(runtime.name) == nullptr) {
    return Error{.message = "'" + runtime.name + "' is no runtime whose functions can be told",
                 .hint = "there is python"};
  }
  return runtime;
}

Status FunctionProbes::Define(const std::string& name, const std::string& definition) {
  const std::string line = fmt::format("p:{}/{} {}\n", group_, name, definition);
  CULPRIT_TRY(AppendTo(TracefsFolder() + "/uprobe_events", line));
  defined_.push_back(name);
  return {};
}

Status FunctionProbes::Watch(const std::string& name, bool is_entry) {
  const std::string folder = TracefsFolder() + "/events/" + group_ + "/" + name;
  const std::string format = ReadKernelFile(folder + "/format");
  const std::optional<uint32_t> file_at = OffsetOfField(format, "file");
  const std::optional<uint32_t> function_at = OffsetOfField(format, "function");
  if (!file_at || !function_at) {
    return Error{.message = "the kernel did not make the event", .file = folder};
  }
  for (const int cpu : OnlineCpus()) {
    CULPRIT_ASSIGN(PerfRing ring, WatchEvent(folder, cpu, kFunctionRingPages));
    watched_.push_back({.ring = std::move(ring),
                        .is_entry = is_entry,
                        .file_at = *file_at,
                        .function_at = *function_at});
  }
  return {};
}

// The counter of a probe is up for all processes as long as one CPU is watched.
Status FunctionProbes::Hold(const std::string& name) {
  const std::string folder = TracefsFolder() + "/events/" + group_ + "/" + name;
  CULPRIT_ASSIGN(PerfRing ring, WatchEvent(folder, OnlineCpus().front(), kHoldingPages));
  held_.push_back(std::move(ring));
  return {};
}

Status FunctionProbes::AddFile(const std::string& path, const symbol::ElfFile& elf,
                               const RuntimeProbes& runtime) {
  const symbol::UsdtProbe* also_on = nullptr;
  const symbol::UsdtProbe* quiet = nullptr;
  const std::vector<symbol::UsdtProbe> all = symbol::ReadUsdtProbes(elf);
  for (const symbol::UsdtProbe& probe : all) {
    if (probe.provider != runtime.provider) continue;
    if (probe.name == runtime.also_on) also_on = &probe;
    if (probe.name == runtime.quiet_place) quiet = &probe;
    const bool is_entry = probe.name == runtime.entry;
    if (!is_entry && probe.name != runtime.exit) continue;
    const std::optional<std::string> file = FetchOfArgument(probe.arguments, 0);
    const std::optional<std::string> function = FetchOfArgument(probe.arguments, 1);
    if (!file || !function) continue;
    const std::string name = fmt::format("{}{}", is_entry ? "entry" : "exit", defined_.size());
    const std::string place = PlaceOf(path, probe.offset, probe.semaphore_offset);
    CULPRIT_TRY(Define(name, fmt::format("{} file=+0({}):string function=+0({}):string", place,
                                         *file, *function)));
    CULPRIT_TRY(Watch(name, is_entry));
  }
  if (defined_.empty() || also_on == nullptr || also_on->semaphore_offset == 0) return {};
  const std::string name = fmt::format("hold{}", defined_.size());
  const uint64_t offset = quiet != nullptr ? quiet->offset : also_on->offset;
  CULPRIT_TRY(Define(name, PlaceOf(path, offset, also_on->semaphore_offset)));
  return Hold(name);
}

Result<FunctionProbes> FunctionProbes::Open(const FunctionRuntime& runtime,
                                            const std::vector<std::string>& files) {
  const RuntimeProbes* const known = FindRuntime(runtime.name);
  if (known == nullptr) return Error{.message = "unknown runtime " + runtime.name};
  const std::string& folder = TracefsFolder();
  if (folder.empty() || access((folder + "/uprobe_events").c_str(), W_OK) != 0) {
    return Error{.message = "function entries need tracefs and root", .hint = "run as root"};
  }
  RemoveLeftBehind(folder);
  FunctionProbes probes;
  probes.group_ = fmt::format("{}{}", kGroupPrefix, getpid());
  probes.prefix_ = known->prefix;
  const std::vector<std::string> places =
      runtime.file.empty() ? files : std::vector<std::string>{runtime.file};
  for (const std::string& path : places) {
    const Result<symbol::ElfFile> elf = symbol::ElfFile::Open(path);
    if (!elf.ok() && !runtime.file.empty()) return elf.error();
    if (elf.ok()) CULPRIT_TRY(probes.AddFile(path, elf.value(), *known));
  }
  const auto has = [&](bool is_entry) {
    return std::any_of(probes.watched_.begin(), probes.watched_.end(),
                       [&](const Watched& watched) { return watched.is_entry == is_entry; });
  };
  if (!has(true) || !has(false)) return NoProbes(*known, places);
  return probes;
}

FunctionProbes::~FunctionProbes() {
  if (defined_.empty()) return;
  // An event can be removed when nobody watches it any longer.
  watched_.clear();
  held_.clear();
  const std::string& folder = TracefsFolder();
  for (const std::string& name : defined_) {
    (void)AppendTo(folder + "/uprobe_events", "-:" + group_ + "/" + name + "\n");
  }
}

void FunctionProbes::TakeRecord(const Watched& watched, std::string_view record) {
  ByteReader in(record);
  const uint32_t type = in.U32();
  in.U32();  // misc and size
  if (type == PERF_RECORD_LOST) {
    in.U64();  // id
    lost_ += in.U64();
    return;
  }
  FunctionHit hit = {.is_entry = watched.is_entry};
  hit.pid = in.U32();
  hit.tid = in.U32();
  hit.time_ns = static_cast<int64_t>(in.U64());
  const uint32_t bytes = in.U32();
  if (type != PERF_RECORD_SAMPLE || in.failed() || bytes > in.remaining()) return;
  const std::string_view raw = record.substr(record.size() - in.remaining(), bytes);
  const std::string_view function = TextAt(raw, watched.function_at);
  if (function.empty()) return;
  hit.function = fmt::format("{}{}:{}", prefix_, function, TextAt(raw, watched.file_at));
  waiting_.push_back(std::move(hit));
}

std::vector<FunctionHit> FunctionProbes::Take(bool all) {
  const int64_t until_ns = all ? INT64_MAX : MonotonicNs() - kHitSettleNs;
  for (Watched& watched : watched_) {
    watched.ring.Drain([&](std::string_view record) { TakeRecord(watched, record); });
  }
  std::stable_sort(
      waiting_.begin(), waiting_.end(),
      [](const FunctionHit& a, const FunctionHit& b) { return a.time_ns < b.time_ns; });
  const auto later = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const FunctionHit& hit) { return hit.time_ns >= until_ns; });
  std::vector<FunctionHit> hits(std::make_move_iterator(waiting_.begin()),
                                std::make_move_iterator(later));
  waiting_.erase(waiting_.begin(), later);
  return hits;
}

}  // namespace culprit::record
