// SPDX-License-Identifier: Apache-2.0
#include "record/life_events.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"

namespace culprit::record {
namespace {

constexpr size_t kLifeRingPages = 64;
constexpr size_t kTrailerBytes = 24;  // pid and tid, time, cpu

// Build-ids are not asked for: a kernel that writes them for one reader marks the
// records of all others as having them, too, and perf beside us would fall over that.
// They are read from the files instead. Older kernels know no cgroups.
perf_event_attr DummyEvent(bool with_cgroup) {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attr.sample_id_all = 1;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.cgroup = with_cgroup ? 1 : 0;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.exclude_kernel = 0;
  return attr;
}

std::string TextOf(std::string_view bytes) {
  return std::string(bytes.substr(0, bytes.find('\0')));
}

void ReadMap(ByteReader& in, LifeEvent& event) {
  event.pid = in.U32();
  event.tid = in.U32();
  event.start = in.U64();
  event.size = in.U64();
  event.file_offset = in.U64();
  in.Bytes(24);  // of the file
  in.Bytes(8);   // protection and flags: only executable ones are told
  event.text = TextOf(in.Bytes(in.remaining()));
}

void ReadTask(ByteReader& in, LifeEvent& event) {
  event.pid = in.U32();
  event.parent_pid = in.U32();
  event.tid = in.U32();
  event.parent_tid = in.U32();
}

}  // namespace

std::optional<LifeEvent> ParseLifeEvent(std::string_view record) {
  if (record.size() < sizeof(perf_event_header) + kTrailerBytes) return std::nullopt;
  ByteReader head(record);
  const uint32_t type = head.U32();
  const uint16_t misc = head.U16();
  ByteReader trailer(record.substr(record.size() - kTrailerBytes));
  trailer.U64();
  LifeEvent event;
  event.time_ns = static_cast<int64_t>(trailer.U64());
  ByteReader in(record.substr(sizeof(perf_event_header),
                              record.size() - sizeof(perf_event_header) - kTrailerBytes));
  switch (type) {
    case PERF_RECORD_MMAP2:
      event.kind = LifeEvent::Kind::kMap;
      ReadMap(in, event);
      break;
    case PERF_RECORD_COMM:
      event.kind = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0 ? LifeEvent::Kind::kExec
                                                            : LifeEvent::Kind::kName;
      event.pid = in.U32();
      event.tid = in.U32();
      event.text = TextOf(in.Bytes(in.remaining()));
      break;
    case PERF_RECORD_FORK:
      event.kind = LifeEvent::Kind::kFork;
      ReadTask(in, event);
      break;
    case PERF_RECORD_EXIT:
      event.kind = LifeEvent::Kind::kExit;
      ReadTask(in, event);
      break;
    case PERF_RECORD_CGROUP:
      event.kind = LifeEvent::Kind::kCgroup;
      event.start = in.U64();
      event.text = TextOf(in.Bytes(in.remaining()));
      break;
    case PERF_RECORD_LOST:
      event.kind = LifeEvent::Kind::kLost;
      in.U64();
      event.start = in.U64();
      break;
    default:
      return std::nullopt;
  }
  if (in.failed()) return std::nullopt;
  return event;
}

Result<LifeEvents> LifeEvents::Open() {
  LifeEvents events;
  for (const int cpu : OnlineCpus()) {
    int fd = -1;
    for (const bool cgroup : {true, false}) {
      perf_event_attr attr = DummyEvent(cgroup);
      fd = OpenPerfEvent(attr, -1, cpu);
      if (fd >= 0 || errno != EINVAL) break;
    }
    if (fd < 0) {
      Error error = ErrnoError("open a perf event on CPU " + std::to_string(cpu), "");
      error.hint = "run as root, or: sysctl kernel.perf_event_paranoid=-1";
      return error;
    }
    CULPRIT_ASSIGN(PerfRing ring, PerfRing::Map(fd, kLifeRingPages));
    events.rings_.push_back(std::move(ring));
  }
  return events;
}

std::vector<LifeEvent> LifeEvents::Take() {
  std::vector<LifeEvent> taken;
  for (PerfRing& ring : rings_) {
    ring.Drain([&](std::string_view record) {
      if (std::optional<LifeEvent> event = ParseLifeEvent(record)) {
        taken.push_back(std::move(*event));
      }
    });
  }
  std::stable_sort(taken.begin(), taken.end(),
                   [](const LifeEvent& a, const LifeEvent& b) { return a.time_ns < b.time_ns; });
  return taken;
}

}  // namespace culprit::record
