// SPDX-License-Identifier: Apache-2.0
#ifdef CULPRIT_HAS_BPF_ENGINE
#include "record/bpf_engine.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <optional>

#include "record/bpf_ring.h"
#include "record/cpu_variables.h"
#include "record/interrupt_cost.h"
#include "record/load_failure.h"
#include "record/machine.h"
#include "record/perf_ring.h"
#include "record/process_scan.h"
#include "record/program_choice.h"
#include "record/tracefs.h"
#include "trace/syscall_operation.h"

namespace culprit::record {
// It speaks of the types of bpf/records.h, which are in this namespace.
#include "engine.skel.h"
namespace {

constexpr size_t kMaxSaid = 256 << 10;

// What it costs to get to a program and back, and to have the caches that it takes,
// by kind of meter: the CPU time of the recorded programs, less what they take when
// nobody looks, less what the kernel programs measure of themselves. Who needs few
// caches (two processes that pass a byte to and fro) pays 100 ns, who needs all of them
// (a database) 700 ns.
constexpr uint64_t kTracepointNs = 700;
// Of a sample at least: where interrupts are dearer that is measured (interrupt_cost.h), up to
// what a machine that is busy might make of it.
constexpr uint64_t kInterruptNs = 1000, kMaxInterruptNs = 20'000;
constexpr uint64_t kCallNs[kMeters] = {
    kTracepointNs, kTracepointNs, kTracepointNs, kInterruptNs, kTracepointNs,
    kTracepointNs, kTracepointNs, kTracepointNs, kInterruptNs,
};

// libbpf explains failures only by printing.
std::string& LibbpfSaid() {
  static std::string said;
  return said;
}

int KeepWhatLibbpfSays(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char* line = nullptr;
  const int length = vasprintf(&line, format, arguments);
  if (length < 0) return 0;
  // The end of what the verifier says is what counts.
  std::string& said = LibbpfSaid();
  said.append(line, static_cast<size_t>(length));
  if (said.size() > kMaxSaid) said.erase(0, said.size() - kMaxSaid);
  free(line);
  return length;
}

Error LoadError(int code) {
  return ExplainLoadFailure({.code = code,
                             .said = LibbpfSaid(),
                             .may_load = MayLoadPrograms(ReadKernelFile("/proc/self/status")),
                             .has_btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0});
}

uint64_t MarkerInode() {
  struct stat found = {};
  return stat((TracefsFolder() + "/trace_marker").c_str(), &found) == 0 ? found.st_ino : 0;
}

// What the programs must know of the kernel besides what its types tell them.
struct CpuLayout {
  bool known = true;
  [[maybe_unused]] int64_t preempt_count_from_queue = 0;
};

#if defined(__x86_64__)
CpuLayout FindCpuLayout() {
  // Without types it is the loading that says so.
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), &btf__free);
  if (types == nullptr) return {};
  const std::optional<int64_t> distance = PreemptCountFromQueue(types.get());
  return {distance.has_value(), distance.value_or(0)};
}
#else
CpuLayout FindCpuLayout() { return {}; }
#endif

Error LayoutError() {
  return {.message = "this kernel's BTF does not say where a CPU counts its interrupts",
          .hint = "--tier perf records without kernel programs"};
}

void SetConstants(engine& skeleton, const EngineOptions& options,
                  [[maybe_unused]] const CpuLayout& layout) {
  engine::engine__rodata& constants = *skeleton.rodata;
#if defined(__x86_64__)
  constants.preempt_count_from_queue = layout.preempt_count_from_queue;
#endif
  constants.self_tgid = static_cast<uint32_t>(getpid());
  constants.whole_system = options.whole_system ? 1 : 0;
  constants.has_switches = options.count_calls ? 0 : 1;
  constants.has_samples = options.sample_period_ns > 0 ? 1 : 0;
  constants.marker_inode = MarkerInode();
  constants.wanted_names =
      static_cast<uint32_t>(std::min(options.names.size(), std::size(constants.wanted_name)));
  for (uint32_t i = 0; i < constants.wanted_names; ++i) {
    // The kernel cuts names the same way.
    const std::string name = options.names[i].substr(0, kNameBytes - 1);
    std::copy(name.begin(), name.end(), constants.wanted_name[i]);
  }
  if (const auto abi = OwnSyscallAbi()) {
    for (size_t number = 0; number < std::size(constants.operation_argument); ++number) {
      const auto argument =
          trace::OperationArgument(trace::SyscallName(static_cast<int64_t>(number), *abi));
      if (argument) constants.operation_argument[number] = static_cast<uint8_t>(*argument + 1);
    }
  }
  constants.unwind_tables = options.unwind_tables ? 1 : 0;
  constants.unwind_compare = options.compare_stacks ? 1 : 0;
  constants.remember_stacks = options.remember_stacks ? 1 : 0;
  constants.prove_chains = options.prove_chains ? 1 : 0;
  constants.irq_range_count =
      static_cast<uint32_t>(std::min<size_t>(options.irq_entries.size(), kMaxIrqRanges));
  for (uint32_t i = 0; i < constants.irq_range_count; ++i) {
    constants.irq_ranges[i] = options.irq_entries[i];
  }
}

// The map has a count for every CPU.
uint32_t CountedKinds(int cpus) {
  constexpr size_t kCountedBytes = 32 << 20;
  const size_t bytes = static_cast<size_t>(std::max(cpus, 1)) * sizeof(CallCount);
  return static_cast<uint32_t>(std::clamp<size_t>(kCountedBytes / bytes, 1024, 16384));
}

// Stacks that a CPU remembers for a desk: a power of two, fewer where there are many
// CPUs.
uint32_t RememberedStacks(uint32_t cpus) {
  constexpr uint32_t kEntries = 1 << 13;
  return std::bit_floor(std::clamp<uint32_t>(kEntries / cpus, 128, 2048));
}

// The same for rules of unwinding.
uint32_t RememberedRules(uint32_t cpus) {
  constexpr uint32_t kEntries = 1 << 14;
  return std::bit_floor(std::clamp<uint32_t>(kEntries / cpus, 256, 2048));
}

// And for the outer parts of stacks.
uint32_t RememberedParts(uint32_t cpus) {
  constexpr uint32_t kEntries = 1 << 11;
  return std::bit_floor(std::clamp<uint32_t>(kEntries / cpus, 32, 256));
}

// And for proven lists of callers.
uint32_t ProvenChains(uint32_t cpus) {
  constexpr uint32_t kEntries = 1 << 15;
  return std::bit_floor(std::clamp<uint32_t>(kEntries / cpus, 512, 4096));
}

void SizeMaps(engine& skeleton, const EngineOptions& options) {
  const auto cpus = static_cast<uint32_t>(std::max(libbpf_num_possible_cpus(), 1));
  const uint32_t remembered = options.unwind_tables ? RememberedStacks(cpus) : 1;
  skeleton.rodata->remembered_mask = remembered - 1;
  skeleton.rodata->remembered_cpus = cpus;
  bpf_map__set_max_entries(skeleton.maps.remembered_stacks, remembered * cpus * kDesks);
  bpf_map__set_max_entries(skeleton.maps.remembered_kernel_stacks, kKernelPlaces * cpus * kDesks);
  bpf_map__set_max_entries(skeleton.maps.kernel_chains, kKernelChains * cpus * kDesks);
  const uint32_t rules = options.unwind_tables ? RememberedRules(cpus) : 1;
  skeleton.rodata->rule_mask = rules - 1;
  bpf_map__set_max_entries(skeleton.maps.remembered_rules, rules * cpus * kRuleDesks);
  const uint32_t parts = options.unwind_tables ? RememberedParts(cpus) : 1;
  skeleton.rodata->callers_mask = parts - 1;
  bpf_map__set_max_entries(skeleton.maps.remembered_callers, parts * cpus * kRuleDesks);
  const uint32_t chains = options.unwind_tables ? ProvenChains(cpus) : 1;
  skeleton.rodata->chain_mask = chains - 1;
  bpf_map__set_max_entries(skeleton.maps.proven_chains, chains * cpus * kRuleDesks);
  bpf_map__set_max_entries(skeleton.maps.ring, static_cast<uint32_t>(options.ring_bytes));
  bpf_map__set_max_entries(skeleton.maps.call_counts,
                           options.count_calls ? CountedKinds(static_cast<int>(cpus)) : 1);
}

// Those that run often: they are not attached during a pause.
std::vector<bpf_program*> PausedPrograms(engine& skeleton) {
  auto& programs = skeleton.progs;
  return {programs.on_issue,     programs.on_issue_direct,  programs.on_complete,
          programs.on_sys_enter, programs.on_sys_exit,      programs.on_counted_exit,
          programs.on_waking,    programs.on_waking_direct, programs.on_wakeup_new,
          programs.on_resume,    programs.on_switch,        programs.on_switch_direct};
}

void ChoosePrograms(engine& skeleton, const EngineOptions& options, const ProgramChoice& choice) {
  auto& programs = skeleton.progs;
  bpf_program__set_autoload(programs.on_sys_enter, options.syscalls || options.count_calls);
  bpf_program__set_autoload(programs.on_sys_exit, options.syscalls && !options.count_calls);
  bpf_program__set_autoload(programs.on_counted_exit, options.count_calls);
  const bool switches = !options.count_calls;
  bpf_program__set_autoload(programs.on_switch, switches && !choice.direct_reads);
  bpf_program__set_autoload(programs.on_waking, switches && !choice.direct_reads);
  bpf_program__set_autoload(programs.on_switch_direct, switches && choice.direct_reads);
  bpf_program__set_autoload(programs.on_waking_direct, switches && choice.direct_reads);
  bpf_program__set_autoload(programs.on_resume, switches && choice.resumes);
  skeleton.rodata->sees_resumes = choice.resumes ? 1 : 0;
  bpf_program__set_autoload(programs.on_wakeup_new, switches);
  bpf_program__set_autoload(programs.on_exit, switches);
  bpf_program__set_autoload(programs.on_issue, options.blocks && !choice.direct_reads);
  bpf_program__set_autoload(programs.on_issue_direct, options.blocks && choice.direct_reads);
  bpf_program__set_autoload(programs.on_complete, options.blocks);
  bpf_program__set_autoload(programs.on_sample, options.sample_period_ns > 0);
  bpf_program__set_autoload(programs.on_fork_of_code, options.unwind_tables);
  bpf_program__set_autoload(programs.on_exec_of_code, options.unwind_tables);
  bpf_program__set_autoload(programs.on_exit_of_code, options.unwind_tables);
  bpf_program__set_autoload(programs.on_write, choice.marks == MarkProgram::kFunction);
  bpf_program__set_autoload(programs.on_write_call, choice.marks == MarkProgram::kSystemCall);
  // Attached by hand, when they are wanted.
  bpf_program__set_autoattach(programs.on_sample, false);
  bpf_program__set_autoattach(programs.tell_open, false);
  bpf_program__set_autoattach(programs.tell_pause, false);
  bpf_program__set_autoattach(programs.prepare_threads, false);
  bpf_program__set_autoload(programs.on_probe, !options.probes.empty());
  bpf_program__set_autoattach(programs.on_probe, false);
  for (bpf_program* program : PausedPrograms(skeleton)) {
    bpf_program__set_autoattach(program, false);
  }
}

struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, DestroyLink>;

}  // namespace

struct BpfEngine::State {
  ~State() {
    links.clear();
    for (const int fd : sample_fds) close(fd);
    if (skeleton != nullptr) engine__destroy(skeleton);
  }

  Status Load(const EngineOptions& options);
  Status AttachSamples(int64_t period_ns);
  Status AttachPaused();
  Status AttachProbes(const std::vector<ProbeSite>& sites);

  engine* skeleton = nullptr;
  BpfRing ring;
  ProgramChoice programs;
  std::vector<Link> links;
  std::vector<int> sample_fds;
  std::vector<Link> paused_links;  // empty during a pause
  Link open_iterator;
  Link pause_iterator;
  uint64_t sample_call_ns = kInterruptNs;
};

// A kernel may refuse the probe of a function, reads without a call and looks at the end of
// a switch; all else must load.
Status BpfEngine::State::Load(const EngineOptions& options) {
  int code = 0;
  const CpuLayout layout = FindCpuLayout();
  if (!layout.known) return LayoutError();
  const ProgramWishes wishes = {.marks = options.marks && MarkerInode() != 0,
                                .direct_reads = options.direct_reads,
                                .resumes = options.resumes};
  for (const ProgramChoice& choice : ProgramChoices(wishes)) {
    LibbpfSaid().clear();
    skeleton = engine__open();
    if (skeleton == nullptr) return LoadError(-errno);
    SetConstants(*skeleton, options, layout);
    ChoosePrograms(*skeleton, options, choice);
    SizeMaps(*skeleton, options);
    code = engine__load(skeleton);
    programs = choice;
    if (code == 0) break;
    engine__destroy(skeleton);
    skeleton = nullptr;
  }
  return code == 0 ? Status() : Status(LoadError(code));
}

Status BpfEngine::State::AttachSamples(int64_t period_ns) {
  for (const int cpu : OnlineCpus()) {
    perf_event_attr attr = {};
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = static_cast<uint64_t>(period_ns);
    const int fd = OpenPerfEvent(attr, -1, cpu);
    if (fd < 0) return ErrnoError("open the sampling clock of a CPU", "");
    Link link(bpf_program__attach_perf_event(skeleton->progs.on_sample, fd));
    if (link == nullptr) {
      close(fd);
      return ErrnoError("attach to the sampling clock", "");
    }
    // The link owns the descriptor.
    links.push_back(std::move(link));
    sample_fds.push_back(dup(fd));
  }
  return {};
}

Status BpfEngine::State::AttachPaused() {
  for (bpf_program* program : PausedPrograms(*skeleton)) {
    if (!bpf_program__autoload(program)) continue;
    Link link(bpf_program__attach(program));
    if (link == nullptr) return LoadError(-errno);
    paused_links.push_back(std::move(link));
  }
  return {};
}

Status BpfEngine::State::AttachProbes(const std::vector<ProbeSite>& sites) {
  for (const ProbeSite& site : sites) {
    bpf_uprobe_opts options = {};
    options.sz = sizeof(options);
    options.bpf_cookie = site.cookie;
    options.ref_ctr_offset = site.semaphore_offset;
    Link link(bpf_program__attach_uprobe_opts(skeleton->progs.on_probe, -1, site.path.c_str(),
                                              site.offset, &options));
    if (link == nullptr) return ErrnoError("attach to a probe", site.path);
    links.push_back(std::move(link));
  }
  return {};
}

Status RunIterator(const Link& iterator) {
  if (iterator == nullptr) return {};
  const int fd = bpf_iter_create(bpf_link__fd(iterator.get()));
  if (fd < 0) return ErrnoError("list the kernel's threads", "");
  char buffer[256];
  while (read(fd, buffer, sizeof(buffer)) > 0) {
  }
  close(fd);
  return {};
}

BpfEngine::BpfEngine(std::unique_ptr<State> state) : state_(std::move(state)) {}
BpfEngine::~BpfEngine() = default;

bool BpfEngine::Built() { return true; }

Result<std::unique_ptr<BpfEngine>> BpfEngine::Start(const EngineOptions& options) {
  libbpf_set_print(&KeepWhatLibbpfSays);
  std::unique_ptr<BpfEngine> engine(new BpfEngine(std::make_unique<State>()));
  State& s = *engine->state_;
  CULPRIT_TRY(s.Load(options));
  // Before anything is recorded.
  if (options.sample_period_ns > 0) {
    s.sample_call_ns =
        std::clamp(static_cast<uint64_t>(MeasureInterruptNs()), kInterruptNs, kMaxInterruptNs);
  }
  if (const int code = engine__attach(s.skeleton); code != 0) return LoadError(code);
  CULPRIT_TRY(s.AttachPaused());
  CULPRIT_TRY(s.AttachProbes(options.probes));
  if (options.sample_period_ns > 0) CULPRIT_TRY(s.AttachSamples(options.sample_period_ns));
  s.open_iterator.reset(bpf_program__attach_iter(s.skeleton->progs.tell_open, nullptr));
  s.pause_iterator.reset(bpf_program__attach_iter(s.skeleton->progs.tell_pause, nullptr));
  const bpf_map* ring = s.skeleton->maps.ring;
  CULPRIT_ASSIGN(s.ring, BpfRing::Open(bpf_map__fd(ring), bpf_map__max_entries(ring)));
  return engine;
}

Status BpfEngine::AddTarget(int64_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  const uint8_t member = 1;
  const int map = bpf_map__fd(state_->skeleton->maps.targets);
  if (bpf_map_update_elem(map, &key, &member, BPF_ANY) != 0) {
    return ErrnoError("record process " + std::to_string(pid), "");
  }
  return {};
}

Status BpfEngine::PrepareThreads() {
  const Link iterator(bpf_program__attach_iter(state_->skeleton->progs.prepare_threads, nullptr));
  return RunIterator(iterator);
}

void BpfEngine::Begin(int64_t begin_ns) {
  auto& shared = state_->skeleton->data->policy;
  shared.begin_ns = static_cast<uint64_t>(begin_ns);
  shared.resume_ns = shared.begin_ns;
}

Status BpfEngine::Pause() {
  auto& shared = state_->skeleton->data->policy;
  shared.resume_ns = ~uint64_t{0};
  // The end of a switch is seen for as long as its begin is.
  while (!state_->paused_links.empty()) state_->paused_links.pop_back();
  return TellPause();
}

Status BpfEngine::TellPause() {
  ++state_->skeleton->data->policy.pauses;
  return RunIterator(state_->pause_iterator);
}

Status BpfEngine::Resume(const std::function<int64_t()>& now_ns) {
  CULPRIT_TRY(state_->AttachPaused());
  auto& shared = state_->skeleton->data->policy;
  ++shared.pauses;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  shared.resume_ns = static_cast<uint64_t>(now_ns());
  return {};
}

void BpfEngine::End(int64_t end_ns) {
  state_->skeleton->data->policy.end_ns = static_cast<uint64_t>(end_ns);
}

Policy BpfEngine::policy() const { return state_->skeleton->data->policy; }

Status BpfEngine::SetPolicy(const Policy& policy) {
  auto& shared = state_->skeleton->data->policy;
  shared.min_wait_ns = policy.min_wait_ns;
  shared.min_syscall_ns = policy.min_syscall_ns;
  shared.user_stacks = policy.user_stacks;
  shared.kernel_stacks = policy.kernel_stacks;
  shared.waker_stacks = policy.waker_stacks;
  shared.syscall_stacks = policy.syscall_stacks;
  return {};
}

void BpfEngine::RenameStacks() { ++state_->skeleton->data->policy.epoch; }

Status BpfEngine::SetSamplePeriod(int64_t period_ns) {
  auto period = static_cast<uint64_t>(period_ns);
  for (const int fd : state_->sample_fds) {
    if (ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) != 0) {
      return ErrnoError("change the sampling period", "");
    }
  }
  return {};
}

void BpfEngine::Drain(const std::function<void(std::string_view)>& visitor) {
  state_->ring.Drain(visitor);
}

Status BpfEngine::TellOpen() {
  // What goes on in a pause is told as of now.
  if (state_->paused_links.empty()) ++state_->skeleton->data->policy.pauses;
  return RunIterator(state_->open_iterator);
}

std::vector<CountedCalls> BpfEngine::ReadCallCounts() const {
  std::vector<CountedCalls> calls;
  const int cpus = libbpf_num_possible_cpus();
  const int map = bpf_map__fd(state_->skeleton->maps.call_counts);
  std::vector<CallCount> each(static_cast<size_t>(std::max(cpus, 1)));
  CallKey key = {};
  const CallKey* before = nullptr;
  // Entries are never taken out, so none is met twice and none is missed.
  for (CallKey next = {}; bpf_map_get_next_key(map, before, &next) == 0;) {
    key = next;
    before = &key;
    if (bpf_map_lookup_elem(map, &key, each.data()) != 0) continue;
    CountedCalls& sum = calls.emplace_back(CountedCalls{.key = key});
    for (const CallCount& one : each) {
      sum.count.calls += one.calls;
      sum.count.dur_ns += one.dur_ns;
    }
  }
  return calls;
}

UnwindMapFds BpfEngine::unwind_maps() const {
  const auto& maps = state_->skeleton->maps;
  if (state_->skeleton->rodata->unwind_tables == 0) return {};
  return {.chunks = bpf_map__fd(maps.unwind_chunks),
          .rules = bpf_map__fd(maps.unwind_rules),
          .ranges = bpf_map__fd(maps.unwind_ranges),
          .processes = bpf_map__fd(maps.unwind_processes),
          .requests = bpf_map__fd(maps.unwind_requests)};
}

UnwindCounters BpfEngine::ReadUnwindCounters() const {
  UnwindCounters total = {};
  const int cpus = libbpf_num_possible_cpus();
  const uint32_t key = 0;
  std::vector<UnwindCounters> all(static_cast<size_t>(std::max(cpus, 0)));
  const int map = bpf_map__fd(state_->skeleton->maps.unwind_counters);
  if (cpus <= 0 || bpf_map_lookup_elem(map, &key, all.data()) != 0) return total;
  for (const UnwindCounters& each : all) {
    total.walked += each.walked;
    total.complete += each.complete;
    total.frames += each.frames;
    total.guessed += each.guessed;
    total.unlisted += each.unlisted;
    total.asked += each.asked;
    total.recalled += each.recalled;
    total.joined += each.joined;
    total.proven += each.proven;
    total.same += each.same;
    total.no_caller += each.no_caller;
    total.cut_short += each.cut_short;
    total.cut_long += each.cut_long;
    total.different += each.different;
  }
  const Counters chains = ReadCounters().total;
  total.walked += chains.chains;
  total.complete += chains.chains;
  total.proven += chains.chains;
  total.frames += chains.chain_frames;
  total.guessed += chains.chain_guesses;
  return total;
}

EngineCounters BpfEngine::ReadCounters() const {
  EngineCounters result;
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return result;
  std::vector<Counters> all(static_cast<size_t>(cpus));
  const uint32_t key = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.counters), &key, all.data()) != 0) {
    return result;
  }
  for (const Counters& each : all) {
    Counters& total = result.total;
    total.lost_records += each.lost_records;
    total.lost_bytes += each.lost_bytes;
    total.stacks += each.stacks;
    total.recalled += each.recalled;
    total.new_stacks += each.new_stacks;
    total.failed_stacks += each.failed_stacks;
    total.no_storage += each.no_storage;
    total.left_out += each.left_out;
    total.busy_ns += each.busy_ns;
    total.chains += each.chains;
    total.chain_frames += each.chain_frames;
    total.chain_guesses += each.chain_guesses;
    for (size_t kind = 0; kind < kMeters; ++kind) {
      total.untimed[kind] += each.untimed[kind];
      total.meters[kind].timed += each.meters[kind].timed;
      total.meters[kind].run_ns += each.meters[kind].run_ns;
    }
    result.lost_records.push_back(each.lost_records);
  }
  return result;
}

uint64_t BpfEngine::KernelTimeNs() const {
  const EngineCounters counters = ReadCounters();
  uint64_t time_ns = 0;
  for (size_t kind = 0; kind < kMeters; ++kind) {
    const uint64_t call_ns = kind == kSampleMeter ? state_->sample_call_ns : kCallNs[kind];
    time_ns += counters.total.meters[kind].run_ns * kTimedRun +
               counters.Runs(static_cast<MeterKind>(kind)) * call_ns;
  }
  return time_ns;
}

double BpfEngine::ring_fill() const {
  return static_cast<double>(state_->ring.used()) / static_cast<double>(state_->ring.bytes());
}

bool BpfEngine::has_marks() const { return state_->programs.marks != MarkProgram::kNone; }

const ProgramChoice& BpfEngine::programs() const { return state_->programs; }

}  // namespace culprit::record
#endif  // CULPRIT_HAS_BPF_ENGINE
