// SPDX-License-Identifier: Apache-2.0
#include "record/perf_events.h"

#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "record/process_scan.h"
#include "record/tracefs.h"

namespace culprit::record {
namespace {

constexpr size_t kEventRingPages = 512;
constexpr uint64_t kSampleFields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
constexpr uint16_t kMaxStack = 127;

perf_event_attr BaseEvent(bool kernel) {
  perf_event_attr attr = {};
  attr.sample_type = kSampleFields;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.disabled = 1;
  attr.exclude_kernel = kernel ? 0 : 1;
  attr.exclude_hv = kernel ? 0 : 1;
  return attr;
}

void WithStacks(perf_event_attr& attr) {
  attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
  attr.sample_max_stack = kMaxStack;
  attr.exclude_callchain_kernel = attr.exclude_kernel;
}

Error OpenError(int code, bool whole_machine) {
  errno = code;
  Error error = ErrnoError("open a perf event", "");
  if (code == EACCES || code == EPERM) {
    error.hint = whole_machine
                     ? "run as root, or: sudo sysctl kernel.perf_event_paranoid=-1"
                     : "only your own processes can be recorded without root, and only with: "
                       "sudo sysctl kernel.perf_event_paranoid=2";
  } else if (code == EMFILE) {
    error.hint = "too many threads for the limit of open files: ulimit -n";
  }
  return error;
}

std::optional<import_::EventFormat> FormatOf(const std::string& system, const std::string& name) {
  const std::string path = TracefsFolder() + "/events/" + system + "/" + name + "/format";
  return import_::ParseEventFormat(ReadKernelFile(path), system);
}

void FillSession(bool whole_machine, import_::PerfSession& session) {
  utsname name = {};
  if (uname(&name) == 0) {
    session.hostname = name.nodename;
    session.os_release = name.release;
    session.arch = name.machine;
  }
  session.kallsyms = ReadKernelFile("/proc/kallsyms");
  // What tells the reader whether strangers are recorded too.
  session.command_line = whole_machine ? "culprit record -a" : "culprit record";
}

std::vector<int64_t> ThreadsOf(const std::vector<int64_t>& pids) {
  std::vector<int64_t> tids;
  for (const int64_t pid : pids) {
    if (const auto process = ScanProcess(pid, false)) {
      for (const ThreadEntry& thread : process->threads) tids.push_back(thread.tid);
    }
  }
  return tids;
}

}  // namespace

std::vector<PerfEvents::Spec> PerfEvents::Plan(const PerfEventOptions& options, bool kernel,
                                               import_::PerfSession& session) {
  std::vector<Spec> specs;
  Spec life = {.attr = BaseEvent(kernel), .name = "dummy"};
  life.attr.type = PERF_TYPE_SOFTWARE;
  life.attr.config = PERF_COUNT_SW_DUMMY;
  life.attr.mmap = life.attr.mmap2 = life.attr.comm = life.attr.comm_exec = life.attr.task = 1;
  life.attr.context_switch = options.whole_machine ? 0 : 1;
  specs.push_back(life);
  if (options.sample_period_ns > 0) {
    Spec clock = {.attr = BaseEvent(kernel), .name = "cpu-clock"};
    clock.attr.type = PERF_TYPE_SOFTWARE;
    clock.attr.config = PERF_COUNT_SW_CPU_CLOCK;
    clock.attr.sample_period = static_cast<uint64_t>(options.sample_period_ns);
    WithStacks(clock.attr);
    specs.push_back(clock);
  }
  if (!options.whole_machine) {
    if (!kernel) return specs;
    Spec switches = {.attr = BaseEvent(kernel), .name = "context-switches"};
    switches.attr.type = PERF_TYPE_SOFTWARE;
    switches.attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    switches.attr.sample_period = 1;
    WithStacks(switches.attr);
    specs.push_back(switches);
    return specs;
  }
  struct Row {
    const char* system;
    const char* name;
    bool stacks;
    bool wanted;
  };
  const Row rows[] = {{"sched", "sched_switch", true, true},
                      {"sched", "sched_waking", true, true},
                      {"sched", "sched_wakeup_new", true, true},
                      {"block", "block_rq_issue", true, true},
                      {"block", "block_rq_complete", false, true},
                      {"raw_syscalls", "sys_enter", true, options.syscalls},
                      {"raw_syscalls", "sys_exit", false, options.syscalls}};
  for (const Row& row : rows) {
    const auto format = FormatOf(row.system, row.name);
    if (!row.wanted || !format) continue;
    Spec spec = {.attr = BaseEvent(kernel), .name = std::string(row.system) + ":" + row.name};
    spec.attr.type = PERF_TYPE_TRACEPOINT;
    spec.attr.config = format->id;
    spec.attr.sample_period = 1;
    spec.attr.sample_type |= PERF_SAMPLE_RAW;
    if (row.stacks) WithStacks(spec.attr);
    specs.push_back(spec);
    session.formats.push_back(*format);
  }
  return specs;
}

// The first event of a CPU gets the ring, all others write into it.
Status PerfEvents::OpenOne(Spec spec, int pid, int cpu, size_t ring, std::vector<uint64_t>& ids) {
  const int fd = OpenPerfEvent(spec.attr, pid, cpu);
  if (fd < 0) return OpenError(errno, pid < 0);
  uint64_t id = 0;
  ioctl(fd, PERF_EVENT_IOC_ID, &id);
  ids.push_back(id);
  if (ring == rings_.size()) {
    CULPRIT_ASSIGN(PerfRing mapped, PerfRing::Map(fd, kEventRingPages));
    rings_.push_back(std::move(mapped));
    return {};
  }
  fds_.push_back(fd);
  if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings_[ring].fd()) != 0) {
    return ErrnoError("share the ring of a perf event", "");
  }
  return {};
}

Status PerfEvents::OpenAll(const PerfEventOptions& options, const std::vector<Spec>& specs) {
  const std::vector<int> cpus = OnlineCpus();
  const std::vector<int64_t> tids =
      options.whole_machine ? std::vector<int64_t>{-1} : ThreadsOf(options.pids);
  for (Spec spec : specs) {
    spec.attr.inherit = options.whole_machine ? 0 : 1;
    std::vector<uint64_t> ids;
    for (const int64_t tid : tids) {
      for (size_t i = 0; i < cpus.size(); ++i) {
        CULPRIT_TRY(OpenOne(spec, static_cast<int>(tid), cpus[i], i, ids));
      }
    }
    import_::PerfAttr attr = import_::ParsePerfAttr(
        {reinterpret_cast<const char*>(&spec.attr), sizeof(spec.attr)}, false);
    attr.name = spec.name;
    session_.attrs.Add(std::move(attr), ids);
  }
  return {};
}

Result<PerfEvents> PerfEvents::Open(const PerfEventOptions& options) {
  if (options.whole_machine && !FormatOf("sched", "sched_switch")) {
    return Error{.message = "the kernel's trace events cannot be read",
                 .hint =
                     "run as root, or: sudo mount -o remount,mode=750,gid=$(id -g) "
                     "/sys/kernel/tracing"};
  }
  Status status;
  // First with the kernel's frames, then without.
  for (const bool kernel : {true, false}) {
    PerfEvents events;
    FillSession(options.whole_machine, events.session_);
    const std::vector<Spec> specs = Plan(options, kernel, events.session_);
    status = events.OpenAll(options, specs);
    events.has_kernel_frames_ = kernel;
    if (status.ok()) return events;
    if (options.whole_machine) break;
  }
  return status.error();
}

PerfEvents::~PerfEvents() {
  for (const int fd : fds_) close(fd);
}

Status PerfEvents::Enable() {
  for (const PerfRing& ring : rings_) {
    if (ioctl(ring.fd(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
      return ErrnoError("start a perf event", "");
    }
  }
  for (const int fd : fds_) {
    if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0) return ErrnoError("start a perf event", "");
  }
  return {};
}

void PerfEvents::Drain(const PerfRing::Visitor& visitor) {
  for (PerfRing& ring : rings_) ring.Drain(visitor);
}

}  // namespace culprit::record
