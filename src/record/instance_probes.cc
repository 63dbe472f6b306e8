// SPDX-License-Identifier: Apache-2.0
#include "record/instance_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "base/text.h"
#include "record/process_scan.h"
#include "record/tracefs.h"
#include "symbol/usdt_notes.h"

namespace culprit::record {
namespace {

constexpr size_t kProbeRingPages = 16;
constexpr size_t kMaxNamedProbes = 8;
constexpr std::string_view kUserEvents = "user_events";

Error ProbeError(std::string_view text, std::string_view form) {
  return {.message = "'" + std::string(text) + "' names no pair of probes",
          .hint = "write " + std::string(form)};
}

// What is before the first `mark`, taken off; nothing if there is none.
std::optional<std::string> TakeUntil(std::string_view& text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string part(text.substr(0, at));
  text.remove_prefix(at + mark.size());
  return part;
}

std::string ScenarioOf(std::string_view begin) {
  constexpr std::array<std::string_view, 8> kEndings = {"__start", "__begin", "__entry", "_start",
                                                        "_begin",  "_entry",  "-start",  "-begin"};
  for (const std::string_view ending : kEndings) {
    if (begin.ends_with(ending) && begin.size() > ending.size()) {
      begin.remove_suffix(ending.size());
      break;
    }
  }
  return std::string(begin);
}

Result<InstanceProbe> ParseProbe(std::string_view text, std::string_view form) {
  const std::string_view whole = text;
  InstanceProbe probe;
  const std::optional<std::string> left = TakeUntil(text, "..");
  if (!left) return ProbeError(whole, form);
  if (const size_t equals = text.rfind('='); equals != std::string_view::npos) {
    probe.scenario = text.substr(equals + 1);
    if (probe.scenario.empty()) return ProbeError(whole, form);
    text = text.substr(0, equals);
  }
  std::string_view begin = *left;
  if (const size_t colon = begin.rfind(':'); colon != std::string_view::npos) {
    probe.group = begin.substr(0, colon);
    begin.remove_prefix(colon + 1);
  }
  probe.begin = begin;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    probe.end_group = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  probe.end = text;
  if (probe.begin.empty() || probe.end.empty()) return ProbeError(whole, form);
  if (probe.scenario.empty()) probe.scenario = ScenarioOf(probe.begin);
  return probe;
}

// Where one probe is, in one file; a probe may stand in several places.
size_t AddSites(const symbol::ElfFile& elf, const std::string& path, const std::string& provider,
                const std::string& name, ProbeCookie cookie, std::vector<ProbeSite>& sites) {
  size_t found = 0;
  for (const symbol::UsdtProbe& probe : symbol::ReadUsdtProbes(elf)) {
    if (probe.provider != provider || probe.name != name) continue;
    sites.push_back({.path = path,
                     .offset = probe.offset,
                     .semaphore_offset = probe.semaphore_offset,
                     .cookie = cookie});
    ++found;
  }
  return found;
}

Error NoSuchProbe(const std::string& provider, const std::string& name,
                  const std::vector<std::string>& files) {
  std::set<std::string> present;
  for (const std::string& path : files) {
    const auto elf = symbol::ElfFile::Open(path);
    if (!elf.ok()) continue;
    for (const symbol::UsdtProbe& probe : symbol::ReadUsdtProbes(elf.value())) {
      present.insert(probe.provider + ":" + probe.name);
    }
  }
  Error error = {.message = "there is no USDT probe " + provider + ":" + name};
  if (files.size() == 1) error.message += " in " + files.front();
  size_t named = 0;
  for (const std::string& probe : present) {
    if (named++ == kMaxNamedProbes) break;
    error.hint += (error.hint.empty() ? "there are " : ", ") + probe;
  }
  if (present.empty()) error.hint = "name the file that has it: FILE:PROVIDER:BEGIN..END";
  return error;
}

}  // namespace

Result<InstanceProbe> ParseUsdtProbe(std::string_view text) {
  constexpr std::string_view kForm = "[FILE:]PROVIDER:BEGIN..END=NAME";
  CULPRIT_ASSIGN(InstanceProbe probe, ParseProbe(text, kForm));
  if (const size_t colon = probe.group.rfind(':'); colon != std::string::npos) {
    probe.file = probe.group.substr(0, colon);
    probe.group.erase(0, colon + 1);
  }
  if (probe.group.empty()) return ProbeError(text, kForm);
  if (probe.end_group.empty()) probe.end_group = probe.group;
  return probe;
}

Result<InstanceProbe> ParseEventProbe(std::string_view text) {
  CULPRIT_ASSIGN(InstanceProbe probe, ParseProbe(text, "[GROUP:]BEGIN..END=NAME"));
  probe.is_usdt = false;
  if (probe.group.empty()) probe.group = kUserEvents;
  if (probe.end_group.empty()) probe.end_group = probe.group;
  for (const std::string* part : {&probe.group, &probe.begin, &probe.end_group, &probe.end}) {
    if (part->find('/') != std::string::npos) return ProbeError(text, "[GROUP:]BEGIN..END=NAME");
  }
  return probe;
}

Result<std::vector<ProbeSite>> FindProbeSites(const std::vector<InstanceProbe>& probes,
                                              const std::vector<std::string>& files) {
  std::vector<ProbeSite> sites;
  for (size_t i = 0; i < probes.size(); ++i) {
    const InstanceProbe& probe = probes[i];
    if (!probe.is_usdt) continue;
    const std::vector<std::string> places =
        probe.file.empty() ? files : std::vector<std::string>{probe.file};
    size_t begins = 0;
    size_t ends = 0;
    for (const std::string& path : places) {
      const Result<symbol::ElfFile> elf = symbol::ElfFile::Open(path);
      if (!elf.ok() && !probe.file.empty()) return elf.error();
      if (!elf.ok()) continue;
      begins += AddSites(elf.value(), path, probe.group, probe.begin, 2 * i, sites);
      ends += AddSites(elf.value(), path, probe.end_group, probe.end, 2 * i + 1, sites);
    }
    if (begins == 0) return NoSuchProbe(probe.group, probe.begin, places);
    if (ends == 0) return NoSuchProbe(probe.end_group, probe.end, places);
  }
  return sites;
}

Status TraceEventProbes::Watch(const std::string& group, const std::string& name,
                               ProbeCookie cookie) {
  const std::string& folder = TracefsFolder();
  const std::string path = folder + "/events/" + group + "/" + name + "/id";
  std::string text = ReadKernelFile(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::optional<uint64_t> id = ParseUnsigned(text);
  if (!id) {
    Error error = {.message = "there is no trace event " + group + ":" + name};
    error.hint = "a program must have registered it before the recording begins";
    if (folder.empty()) error.hint = "mount -t tracefs tracefs /sys/kernel/tracing";
    if (!folder.empty() && group == kUserEvents &&
        access((folder + "/user_events_data").c_str(), F_OK) != 0) {
      error.hint = "this kernel was built without user_events (CONFIG_USER_EVENTS)";
    }
    return error;
  }
  for (const int cpu : OnlineCpus()) {
    perf_event_attr attr = {};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = *id;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    const int fd = OpenPerfEvent(attr, -1, cpu);
    if (fd < 0) return ErrnoError("watch the trace event " + group + ":" + name, "");
    CULPRIT_ASSIGN(PerfRing ring, PerfRing::Map(fd, kProbeRingPages));
    watched_.push_back({.ring = std::move(ring), .cookie = cookie});
  }
  return {};
}

Result<TraceEventProbes> TraceEventProbes::Open(const std::vector<InstanceProbe>& probes) {
  TraceEventProbes events;
  for (size_t i = 0; i < probes.size(); ++i) {
    const InstanceProbe& probe = probes[i];
    if (probe.is_usdt) continue;
    CULPRIT_TRY(events.Watch(probe.group, probe.begin, 2 * i));
    CULPRIT_TRY(events.Watch(probe.end_group, probe.end, 2 * i + 1));
  }
  return events;
}

std::vector<ProbeHit> TraceEventProbes::Take() {
  std::vector<ProbeHit> hits;
  for (Watched& watched : watched_) {
    watched.ring.Drain([&](std::string_view record) {
      ByteReader in(record);
      const uint32_t type = in.U32();
      in.U32();  // misc and size
      ProbeHit hit = {.cookie = watched.cookie};
      hit.pid = in.U32();
      hit.tid = in.U32();
      hit.time_ns = static_cast<int64_t>(in.U64());
      if (type == PERF_RECORD_SAMPLE && !in.failed()) hits.push_back(hit);
    });
  }
  std::stable_sort(hits.begin(), hits.end(), [](const ProbeHit& a, const ProbeHit& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.cookie < b.cookie;
  });
  return hits;
}

}  // namespace culprit::record
