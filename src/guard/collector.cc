// SPDX-License-Identifier: Apache-2.0
#include "guard/collector.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "guard/cpu_meter.h"
#include "guard/loop_work.h"
#include "guard/open_unit_type.h"
#include "guard/proc_file.h"

namespace culprit::guard {
namespace {

constexpr uint32_t kIdleRounds = 8;  // of one that does nothing, between two full looks
constexpr uint64_t kReadClocksNs = 500'000'000;
constexpr uint64_t kBeatNs = 500'000'000;  // processes give up hope after five seconds
constexpr uint64_t kHalfPpm = 500'000;
// The units of an output that trickles are so many times shorter than the loop's work.
constexpr uint64_t kShorterThanUsual = 3;

// Empty if it ended.
std::shared_ptr<const ProcessImage> ReadImage(int64_t pid) {
  auto image = ProcessImage::Read(pid);
  return std::make_shared<const ProcessImage>(image.ok() ? std::move(image).value()
                                                         : ProcessImage());
}

int64_t UnixTimeOf(uint64_t monotonic_ns) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t unix_ns = static_cast<int64_t>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
  return unix_ns - (static_cast<int64_t>(GuardClockNs()) - static_cast<int64_t>(monotonic_ns));
}

// A tail begins with its iteration, and each of its parts later.
bool IsThatUnit(const OpenUnit& open, const wire::Violation& told) {
  const auto kind = static_cast<wire::UnitKind>(told.unit_kind);
  return open.tid == told.tid && open.kind == kind &&
         (kind == wire::UnitKind::kTail ? open.begin_ns >= told.begin_ns
                                        : open.begin_ns == told.begin_ns);
}

// Until when looks can be at it. A tail lasts longer than its parts take together.
uint64_t EndOfUnit(const wire::Violation& violation) {
  return std::max(violation.told_ns, violation.begin_ns + violation.wall_ns);
}

void AddCounters(const GuardedProcess& process, SessionTotals& totals) {
  const ProcessCounters counters = process.Counters();
  ++totals.processes;
  totals.units += counters.units;
  totals.hits += counters.hits;
  totals.violations += counters.violations;
  totals.suppressed += counters.suppressed;
  totals.lost_records += counters.lost_records;
  totals.lost_log_bytes += counters.lost_log_bytes;
  totals.bad_records += process.bad_records();
  totals.patched = std::max(totals.patched, counters.patched);
  totals.refused = std::max(totals.refused, counters.refused);
  totals.removed = std::max(totals.removed, counters.removed);
  totals.foreign_modules = std::max(totals.foreign_modules, counters.foreign_modules);
}

}  // namespace

Collector::Collector(SessionFolder& session, const CollectorOptions& options)
    : session_(session), options_(options), watch_(options.hang), pace_(options.budget_ppm) {}

void Collector::Use(const Profile& profile, std::string_view plan) {
  profile_ = &profile;
  types_ = PlanTypes(plan);
  min_similarity_ppm_ = PlanMinSimilarityPpm(plan);
  spins_.Use(profile);
  usual_ns_ = UnitLengthsByTime(profile, kHalfPpm);
}

void Collector::FindProcesses() {
  unready_ = false;
  for (const int64_t pid : session_.Processes()) {
    const auto known = members_.find(pid);
    if (known != members_.end() && !known->second.process->replaced()) continue;
    auto process = GuardedProcess::Open(session_.path(), pid);
    if (!process.ok()) {
      unready_ = true;  // its files will be
      continue;
    }
    if (known != members_.end()) {
      Forget(pid);
      --past_.processes;  // it is still there
    }
    Member member;
    member.process = std::make_unique<GuardedProcess>(std::move(process).value());
    // Servers that fork for every client: what the parent has need not be read again.
    const auto parent = members_.find(member.process->parent_pid());
    member.name = parent != members_.end() ? parent->second.name : ProcStatusField(pid, "Name");
    member.image = parent != members_.end() ? parent->second.image : ReadImage(pid);
    members_.emplace(pid, std::move(member));
  }
}

void Collector::Poll(const CollectorSink& sink) {
  const uint64_t now_ns = GuardClockNs();
  if (options_.watch && now_ns - whole_round_ns_ < options_.whole_round_ns) {
    for (auto& [pid, member] : members_) LookAtUnits(member, now_ns);
  } else {
    whole_round_ns_ = now_ns;
    WholeRound(sink, now_ns);
  }
  Send(options_.wait_for_names ? namer_.TakeAll() : namer_.Take(), sink);
  if (KeepPace() && options_.watch) LookForSpins();
}

void Collector::WholeRound(const CollectorSink& sink, uint64_t now_ns) {
  if (now_ns - beat_ns_ >= kBeatNs) {
    beat_ns_ = now_ns;
    session_.Beat(now_ns);
  }
  if (session_.TakeNews() || unready_) {
    const uint64_t begin_ns = ThreadCpuNs();
    FindProcesses();
    other_cpu_ns_ += ThreadCpuNs() - begin_ns;
  }
  std::vector<int64_t> ended;
  for (auto& [pid, member] : members_) {
    if (!PollMember(member, sink, now_ns)) ended.push_back(pid);
  }
  if (ended.empty()) return;
  const uint64_t end_ns = ThreadCpuNs();
  for (const int64_t pid : ended) Retire(pid);
  other_cpu_ns_ += ThreadCpuNs() - end_ns;
}

bool Collector::KeepPace() {
  const uint64_t now_ns = GuardClockNs();
  const bool read_clocks = now_ns - clocks_read_ns_ >= kReadClocksNs;
  if (read_clocks) {
    uint64_t used_ns = 0;
    for (auto& [pid, member] : members_) {
      const uint64_t before_ns = std::exchange(member.cpu_ns, ProcessCpuNs(pid));
      const bool known = before_ns != 0 && member.cpu_ns > before_ns;
      member.used_cpu_ns = known ? member.cpu_ns - before_ns : 0;
      used_ns += member.used_cpu_ns;
    }
    program_cpus_ = static_cast<double>(used_ns) / static_cast<double>(now_ns - clocks_read_ns_);
    clocks_read_ns_ = now_ns;
  }
  const uint64_t naming_ns = namer_.cpu_ns();
  pause_ns_ =
      pace_.Next(now_ns, ThreadCpuNs() + naming_ns, naming_ns + other_cpu_ns_, program_cpus_);
  return read_clocks;
}

void Collector::LookForSpins() {
  // Who took less since the last look has no thread that never sleeps.
  constexpr uint64_t kLeastCpuNs = kReadClocksNs / 8;
  for (auto& [pid, member] : members_) {
    if (member.used_cpu_ns < kLeastCpuNs) continue;
    const uint64_t now_ns = GuardClockNs();
    std::set<int64_t> threads;
    for (const ThreadUnits& thread : member.process->UnitsByThread()) {
      threads.insert(thread.tid);
      LookForSpin(member, thread, now_ns);
    }
    spins_.KeepOnly(pid, threads);
    std::erase_if(member.spin_looks,
                  [&](const auto& looks) { return !threads.contains(looks.first); });
  }
}

void Collector::LookForSpin(Member& member, const ThreadUnits& thread, uint64_t now_ns) {
  const int64_t pid = member.process->pid();
  std::optional<Spin> spin;
  if (spins_.IsFast(pid, thread, now_ns)) {
    spin = spins_.Look(pid, thread, ReadThreadLife(pid, thread.tid),
                       BytesReadByThread(pid, thread.tid), now_ns);
  }
  const bool suspect = spins_.IsSuspect(pid, thread.tid, now_ns);
  if (suspect || spin) {
    std::vector<UnitLook>& looks = member.spin_looks[thread.tid];
    auto stack = watch_.StackOf(pid, thread.tid, *member.image);
    if (stack.ok() && looks.size() < UnitWatch::kMaxLooks) {
      looks.push_back({.time_ns = now_ns, .stack = std::move(stack).value()});
    }
  }
  if (spin) namer_.Add(MakeReport(member, *spin));
  if (!suspect) member.spin_looks.erase(thread.tid);
}

void Collector::Renew(Member& member) {
  auto image = ReadImage(member.process->pid());
  if (!image->code().empty()) member.image = std::move(image);
}

void Collector::Finish(const CollectorSink& sink) {
  FindProcesses();
  for (auto& [pid, member] : members_) member.idle_rounds = 0;  // all are looked at fully
  whole_round_ns_ = 0;
  Poll(sink);
  Send(namer_.TakeAll(), sink);
}

void Collector::Forget(int64_t pid) {
  AddCounters(*members_.at(pid).process, past_);
  watch_.Forget(pid);
  spins_.Forget(pid);
  members_.erase(pid);
}

// A server that forks for every client would fill the memory with their files.
void Collector::Retire(int64_t pid) {
  Forget(pid);
  unlink(session_.FilePath("slots", pid).c_str());
  unlink(session_.FilePath("ring", pid).c_str());
}

void Collector::LookAtUnits(Member& member, uint64_t now_ns) {
  for (const HungUnit& hung : watch_.Round(*member.process, *member.image, now_ns)) {
    namer_.Add(MakeReport(member, hung));
  }
}

bool Collector::PollMember(Member& member, const CollectorSink& sink, uint64_t now_ns) {
  if (options_.watch) {
    LookAtUnits(member, now_ns);
    member.idle_rounds = member.process->idle() ? member.idle_rounds + 1 : 0;
  }
  // Rings are written by units, and who has none has time. Who is in the midst of one, at
  // every look, may have been killed there.
  const bool seldom =
      member.idle_rounds != 0 && member.idle_rounds % kIdleRounds != 1 && member.running.empty();
  if (seldom) return true;
  // Asked before its ring is emptied: nothing is written after the end.
  const bool ended = !member.process->alive();
  TakeRing(member, sink, now_ns);
  return !ended;
}

void Collector::TakeRing(Member& member, const CollectorSink& sink, uint64_t now_ns) {
  const int64_t pid = member.process->pid();
  RingSink ring;
  ring.violation = [&](const wire::Violation& violation) {
    if ((violation.flags & wire::Violation::kStillRunning) == 0) {
      Take(member, WithStack(member, violation));
    } else {
      RunningUnit unit;
      unit.violation = violation;
      unit.first = violation;
      unit.life = ReadThreadLife(pid, violation.tid);
      member.running.push_back(unit);
    }
  };
  ring.samples = [&](std::span<const wire::Sample> samples) {
    for (const wire::Sample& sample : samples) spins_.Add(pid, sample);
    if (sink.samples) sink.samples(pid, samples);
  };
  ring.modules_changed = [&] { Renew(member); };
  member.process->Drain(ring);
  if (!member.running.empty()) SettleRunning(member, now_ns);
}

void Collector::Take(Member& member, const wire::Violation& violation) {
  UnnamedReport report = MakeReport(member, violation);
  if (IsTold(report.report)) {
    namer_.Add(std::move(report));
  } else {
    ++past_.withdrawn;
  }
}

bool Collector::IsTold(const UnitReport& report) const {
  if (report.state == UnitReport::State::kHungEnded) return true;
  if (report.counted_ns() <= report.threshold_ns) return false;
  if (report.state != UnitReport::State::kTrickles) return true;
  // A long download has long units, each of which gets rid of much.
  const uint64_t unit_ns = report.counted_ns() / std::max(report.ready_events, 1u);
  return unit_ns <= report.usual_ns / kShorterThanUsual;
}

void Collector::Send(const std::vector<UnitReport>& reports, const CollectorSink& sink) {
  if (!sink.report || reports.empty()) return;
  const uint64_t begin_ns = ThreadCpuNs();
  for (const UnitReport& report : reports) sink.report(report);
  other_cpu_ns_ += ThreadCpuNs() - begin_ns;
}

// The end of a unit that a guard told of while it ran: with the stack of then.
wire::Violation Collector::WithStack(Member& member, const wire::Violation& end) {
  if ((end.flags & wire::Violation::kEndOfRunning) == 0) return end;
  wire::Violation joined = end;
  const auto told =
      std::find_if(member.running.begin(), member.running.end(), [&](const RunningUnit& unit) {
        return unit.first.tid == end.tid && unit.first.unit_kind == end.unit_kind &&
               unit.first.begin_ns == end.begin_ns;
      });
  if (told == member.running.end()) return joined;
  joined.flags &= ~uint32_t{wire::Violation::kStackFromSite};
  joined.frames = told->first.frames;
  std::copy(std::begin(told->first.frame), std::end(told->first.frame), std::begin(joined.frame));
  member.running.erase(told);
  return joined;
}

// How long a unit takes that never comes to its end (its process is killed, it
// leaves the loop) is seen from here, to a round.
void Collector::SettleRunning(Member& member, uint64_t now_ns) {
  // One that has just ended may have its record behind what was read of the ring.
  constexpr int kRoundsAfterEnd = 3;
  const int64_t pid = member.process->pid();
  const std::vector<OpenUnit> open = member.process->OpenUnits(now_ns);
  std::vector<RunningUnit> running;
  for (RunningUnit& unit : std::exchange(member.running, {})) {
    const wire::Violation& first = unit.first;
    const auto found = std::find_if(
        open.begin(), open.end(), [&](const OpenUnit& other) { return IsThatUnit(other, first); });
    if (found == open.end()) {
      if (++unit.rounds_after_end < kRoundsAfterEnd && member.process->alive()) {
        running.push_back(unit);
      } else {
        Take(member, unit.violation);
      }
      continue;
    }
    if (!member.process->alive()) {
      Take(member, unit.violation);
      continue;
    }
    unit.rounds_after_end = 0;
    const ThreadLife life = ReadThreadLife(pid, first.tid);
    unit.violation.wall_ns =
        std::max(unit.violation.wall_ns, found->begin_ns + found->elapsed_ns - first.begin_ns);
    if (life.cpu_ns >= unit.life.cpu_ns && life.run_delay_ns >= unit.life.run_delay_ns) {
      unit.violation.cpu_ns = first.cpu_ns + life.cpu_ns - unit.life.cpu_ns;
      unit.violation.run_delay_ns = first.run_delay_ns + life.run_delay_ns - unit.life.run_delay_ns;
    }
    running.push_back(unit);
  }
  member.running = std::move(running);
}

void Collector::FillType(uint32_t type, uint32_t loop, UnitReport& report) const {
  report.type = type;
  report.type_name = "[unknown type]";
  if (type == wire::kWholeIteration) report.type_name = "[whole iteration]";
  if (type == kSpinningType) report.type_name = "[spins]";
  if (type == kTricklingType) report.type_name = "[trickles]";
  if (profile_ == nullptr) return;
  if (type < profile_->types.size()) report.type_name = profile_->types[type].name;
  if (loop < profile_->loops.size()) report.loop = LoopName(*profile_, loop);
}

void Collector::FillNearest(const OpenUnit& unit, UnitReport& report) const {
  if (report.type != wire::kUnknown || profile_ == nullptr) return;
  const TypeGuess nearest = GuessType(types_, unit);
  if (nearest.type < profile_->types.size() && nearest.similarity_ppm > 0) {
    report.nearest_type = profile_->types[nearest.type].name;
  }
}

// What is loaded by now is known better than what was, as long as the process lives.
void Collector::AddStack(Member& member, UnnamedStack stack, UnnamedReport& report) {
  const bool unknown =
      std::any_of(stack.addresses.begin(), stack.addresses.end(),
                  [&](uint64_t address) { return member.image->Find(address) == nullptr; });
  if (unknown) Renew(member);
  report.image = member.image;
  report.stacks.push_back(std::move(stack));
}

void Collector::AddLooks(Member& member, const std::vector<UnitLook>& looks,
                         UnnamedReport& report) {
  for (const UnitLook& look : looks) {
    AddStack(member,
             {.by = SeenStack::By::kLook,
              .running = look.stack.running,
              .system_call = look.stack.system_call,
              .addresses = look.stack.addresses,
              .first_is_place = true},
             report);
  }
}

UnitReport Collector::NewReport(const Member& member, int64_t tid, uint64_t begin_ns,
                                uint64_t wall_ns) {
  UnitReport report;
  report.pid = member.process->pid();
  report.tid = tid;
  report.process = member.name;
  report.begin_ns = begin_ns;
  report.begin_unix_ns = UnixTimeOf(begin_ns);
  report.wall_ns = wall_ns;
  return report;
}

UnnamedReport Collector::MakeReport(Member& member, const wire::Violation& violation) {
  using Flags = wire::Violation::Flags;
  UnnamedReport unnamed;
  UnitReport& report = unnamed.report;
  report = NewReport(member, violation.tid, violation.begin_ns, violation.wall_ns);
  const bool unknown = (violation.flags & Flags::kUnknownType) != 0;
  FillType(unknown ? wire::kUnknown : violation.type, violation.loop, report);
  if ((violation.flags & Flags::kIterationCheck) != 0) report.type_name = "[whole iteration]";
  report.kind = static_cast<wire::UnitKind>(violation.unit_kind);
  report.ready_ns = std::min(violation.run_delay_ns, violation.wall_ns);
  report.cpu_ns = violation.cpu_ns;
  report.has_cpu = true;
  report.threshold_ns = violation.threshold_ns;
  report.similarity_ppm = violation.similarity_ppm;
  report.ready_events = violation.ready;
  if ((violation.flags & Flags::kTrickles) != 0) {
    FillTrickle(violation, report);
  } else if ((violation.flags & Flags::kIterationCheck) == 0) {
    OpenUnit unit;
    unit.kind = report.kind;
    unit.loop = violation.loop;
    std::copy(std::begin(violation.contexts), std::end(violation.contexts), unit.contexts);
    FillNearest(unit, report);
  }
  UnitWatch::Seen seen =
      watch_.Take(report.pid, report.tid, report.kind, report.begin_ns, EndOfUnit(violation));
  if (seen.hung) report.state = UnitReport::State::kHungEnded;
  // A stopped thread neither runs nor is ready: no more than its blocked time can
  // be our doing, however long we waited for a CPU ourselves.
  report.looked_ns = std::min(seen.held_ns, report.blocked_ns());
  AddLooks(member, seen.looks, unnamed);
  if (violation.frames > 0) {
    const bool at_end = (violation.flags & Flags::kStackFromSite) != 0;
    AddStack(member,
             {.by = at_end ? SeenStack::By::kEnd : SeenStack::By::kGuard,
              .addresses = {violation.frame, violation.frame + violation.frames}},
             unnamed);
  }
  return unnamed;
}

void Collector::FillTrickle(const wire::Violation& violation, UnitReport& report) const {
  FillType(kTricklingType, violation.loop, report);
  report.state = UnitReport::State::kTrickles;
  report.units = violation.units;
  report.usual_ns = violation.loop < usual_ns_.size() ? usual_ns_[violation.loop] : 0;
}

UnnamedReport Collector::MakeReport(Member& member, const HungUnit& hung) {
  UnnamedReport unnamed;
  UnitReport& report = unnamed.report;
  report = NewReport(member, hung.unit.tid, hung.unit.begin_ns, hung.unit.elapsed_ns);
  report.state = UnitReport::State::kHangs;
  // What it has done so far tells its type, as far as anything does.
  const TypeGuess guess = GuessType(types_, hung.unit, min_similarity_ppm_);
  FillType(guess.type, hung.unit.loop, report);
  report.similarity_ppm = guess.similarity_ppm;
  FillNearest(hung.unit, report);
  report.kind = hung.unit.kind;
  report.ready_ns = hung.unit.run_delay_ns;
  report.threshold_ns = guess.threshold_ns != 0 ? guess.threshold_ns : options_.hang.hang_ns;
  report.ready_events = hung.unit.ready;
  AddLooks(member, hung.looks, unnamed);
  for (const RunningUnit& unit : member.running) {
    if (!IsThatUnit(hung.unit, unit.first)) continue;
    AddStack(member,
             {.by = SeenStack::By::kGuard,
              .addresses = {unit.first.frame, unit.first.frame + unit.first.frames}},
             unnamed);
  }
  return unnamed;
}

UnnamedReport Collector::MakeReport(Member& member, const Spin& spin) {
  UnnamedReport unnamed;
  UnitReport& report = unnamed.report;
  report = NewReport(member, spin.tid, spin.begin_ns, spin.wall_ns);
  report.state = UnitReport::State::kSpins;
  FillType(kSpinningType, spin.loop, report);
  report.ready_ns = std::min(spin.run_delay_ns, spin.wall_ns);
  report.cpu_ns = spin.cpu_ns;
  report.has_cpu = true;
  report.threshold_ns = SpinWatch::kSpinNs;
  report.units = spin.units;
  report.usual_ns = spin.usual_ns;
  AddLooks(member, member.spin_looks[spin.tid], unnamed);
  return unnamed;
}

SessionTotals Collector::Totals() const {
  SessionTotals totals = past_;
  for (const auto& [pid, member] : members_) {
    AddCounters(*member.process, totals);
    ++totals.alive;
  }
  return totals;
}

bool Collector::AllHavePlan(uint32_t plan) const {
  return std::all_of(members_.begin(), members_.end(), [&](const auto& entry) {
    return entry.second.process->Counters().plan == plan;
  });
}

bool Collector::AllEnded() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const auto& entry) { return entry.second.process->Counters().ended; });
}

std::vector<int64_t> Collector::pids() const {
  std::vector<int64_t> all;
  for (const auto& [pid, member] : members_) all.push_back(pid);
  return all;
}

std::optional<bool> Collector::IsOwnCode(int64_t pid, uint64_t address) const {
  const auto member = members_.find(pid);
  if (member == members_.end()) return std::nullopt;
  switch (member->second.image->OwnerOf(address)) {
    case ProcessImage::Owner::kRuntime:
      return true;
    case ProcessImage::Owner::kNoFile:
      return member->second.process->IsTrampoline(address);
    case ProcessImage::Owner::kOther:
      break;
  }
  return false;
}

}  // namespace culprit::guard
