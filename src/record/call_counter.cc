// SPDX-License-Identifier: Apache-2.0
#include "record/call_counter.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "record/machine.h"
#include "record/process_scan.h"
#include "trace/syscall_operation.h"

namespace culprit::record {
namespace {

constexpr int64_t kCountTickNs = 50'000'000;
constexpr int64_t kCountCycleNs = 400'000'000;
constexpr int64_t kMembersNs = 100'000'000;
constexpr double kLeastDuty = 1.0 / 16;
constexpr double kCheapShare = 0.4;  // of the budget
constexpr int kCheapTurns = 8;

bool KeyLess(const CallKey& a, const CallKey& b) {
  const int order = memcmp(a.process, b.process, sizeof(a.process));
  if (order != 0) return order < 0;
  if (a.number != b.number) return a.number < b.number;
  if (a.operation != b.operation) return a.operation < b.operation;
  return a.error < b.error;
}

std::string NameOf(const CallKey& key) {
  return {key.process, strnlen(key.process, sizeof(key.process))};
}

}  // namespace

Result<std::unique_ptr<CallCounter>> CallCounter::Start(const CallCounterOptions& options) {
  std::unique_ptr<CallCounter> counter(new CallCounter());
  CallCounter& c = *counter;
  c.options_ = options;
  c.abi_ = OwnSyscallAbi();
  CULPRIT_ASSIGN(c.engine_, BpfEngine::Start({.whole_system = options.target.whole_system,
                                              .names = options.target.names,
                                              .count_calls = true,
                                              .blocks = false,
                                              .ring_bytes = uint64_t{1} << 20,
                                              .sample_period_ns = 0,
                                              .unwind_tables = false}));
  CULPRIT_ASSIGN(const std::vector<int64_t> pids, FindProcesses(options.target));
  for (const int64_t pid : pids) CULPRIT_TRY(c.engine_->AddTarget(pid));
  CULPRIT_TRY(c.engine_->PrepareThreads());
  c.counted_until_ns_ = MonotonicNs();
  c.engine_->Begin(c.counted_until_ns_);
  c.turn_cost_ = c.take_cost_ = c.CostNow();
  c.cycle_begin_ns_ = c.turn_cost_.wall_ns;
  return counter;
}

int64_t CallCounter::ArgumentOf(uint32_t number, uint32_t operation) const {
  if (!abi_) return number;
  return trace::PackCallWith(number, *abi_, [&](size_t) { return uint64_t{operation}; });
}

Cost CallCounter::CostNow() const {
  return {.wall_ns = MonotonicNs(),
          .kernel_ns = static_cast<int64_t>(engine_->KernelTimeNs()),
          .own_ns = ThreadCpuNs(),
          .busy_ns = static_cast<int64_t>(engine_->ReadCounters().total.busy_ns)};
}

void CallCounter::CountTime(int64_t now_ns) {
  if (!paused_) counted_ns_ += now_ns - counted_until_ns_;
  counted_until_ns_ = now_ns;
}

// Who is moved into a cgroup is not seen by the kernel programs.
Status CallCounter::Join(int64_t now_ns) {
  if (options_.target.cgroups.empty() || now_ns - joined_ns_ < kMembersNs) return {};
  joined_ns_ = now_ns;
  const Result<std::vector<int64_t>> pids = FindProcesses({.cgroups = options_.target.cgroups});
  // The cgroup is gone, and everybody in it.
  if (!pids.ok()) return {};
  const std::set<int64_t> before =
      std::exchange(members_, {pids.value().begin(), pids.value().end()});
  for (const int64_t pid : members_) {
    if (!before.contains(pid)) CULPRIT_TRY(engine_->AddTarget(pid));
  }
  return {};
}

// A turn is a whole cycle: part of one would be dear or cheap by chance.
Status CallCounter::KeepBudget(int64_t now_ns) {
  if (now_ns - turn_cost_.wall_ns < kCountCycleNs) return {};
  const Cost now = CostNow();
  const double share = Governor::Share(now - turn_cost_);
  turn_cost_ = now;
  if (options_.budget <= 0) return {};
  if (share > options_.budget && duty_ > kLeastDuty) {
    // What it costs is in proportion to the time in which it looks.
    const double wanted = duty_ * options_.budget / share;
    while (duty_ > kLeastDuty && duty_ > wanted) duty_ /= 2;
    cheap_turns_ = 0;
  } else if (share < kCheapShare * options_.budget && duty_ < 1) {
    if (++cheap_turns_ >= kCheapTurns) {
      duty_ *= 2;
      cheap_turns_ = 0;
    }
  } else {
    cheap_turns_ = 0;
  }
  return {};
}

Status CallCounter::KeepDuty(int64_t now_ns) {
  const auto on_ns = static_cast<int64_t>(duty_ * static_cast<double>(kCountCycleNs));
  const bool pause = (now_ns - cycle_begin_ns_) % kCountCycleNs >= on_ns;
  if (pause == paused_) return {};
  CountTime(now_ns);
  paused_ = pause;
  if (!pause) return engine_->Resume(&MonotonicNs);
  CULPRIT_TRY(engine_->Pause());
  // What a pause tells is about switches, which nobody looks at here.
  engine_->Drain([](std::string_view) {});
  return {};
}

Status CallCounter::Run(int64_t dur_ns, const std::function<bool()>& stop) {
  const int64_t end_ns = MonotonicNs() + dur_ns;
  while (!stop()) {
    const int64_t now_ns = MonotonicNs();
    if (now_ns >= end_ns) break;
    CULPRIT_TRY(Join(now_ns));
    CULPRIT_TRY(KeepBudget(now_ns));
    CULPRIT_TRY(KeepDuty(now_ns));
    int64_t sleep_ns = std::min(end_ns - now_ns, kCountTickNs);
    if (duty_ < 1) sleep_ns = std::min(sleep_ns, kCountCycleNs / 16);
    poll(nullptr, 0, static_cast<int>(std::max<int64_t>(sleep_ns / 1'000'000, 1)));
  }
  return {};
}

CallSums CallCounter::Take() {
  CountTime(MonotonicNs());
  CallSums sums = {.counted_ns = std::exchange(counted_ns_, 0)};
  std::vector<CountedCalls> now = engine_->ReadCallCounts();
  std::sort(now.begin(), now.end(),
            [](const auto& a, const auto& b) { return KeyLess(a.key, b.key); });
  auto old = before_.begin();
  for (const CountedCalls& each : now) {
    while (old != before_.end() && KeyLess(old->key, each.key)) ++old;
    CallCount count = each.count;
    if (old != before_.end() && !KeyLess(each.key, old->key)) {
      count.calls -= std::min(count.calls, old->count.calls);
      count.dur_ns -= std::min(count.dur_ns, old->count.dur_ns);
    }
    if (count.calls == 0) continue;
    sums.calls.push_back({.process = NameOf(each.key),
                          .arg0 = ArgumentOf(each.key.number, each.key.operation),
                          .error = static_cast<uint16_t>(each.key.error),
                          .calls = count.calls,
                          .dur_ns = static_cast<int64_t>(count.dur_ns)});
  }
  before_ = std::move(now);
  const Cost cost = CostNow();
  share_ = Governor::Share(cost - take_cost_);
  take_cost_ = cost;
  return sums;
}

Result<std::vector<OpenCall>> CallCounter::Open() {
  std::vector<OpenCall> open;
  // In a pause it is not known who has returned.
  if (paused_) return open;
  std::vector<std::pair<OpenRecord, int64_t>> records;
  engine_->Drain([](std::string_view) {});
  CULPRIT_TRY(engine_->TellOpen());
  const int64_t now_ns = MonotonicNs();
  engine_->Drain([&](std::string_view bytes) {
    OpenRecord record = {};
    if (bytes.size() < sizeof(record)) return;
    memcpy(&record, bytes.data(), sizeof(record));
    if (record.wait.head.type != kOpenRecord || record.syscall_enter_ns == 0) return;
    records.emplace_back(record, now_ns - static_cast<int64_t>(record.syscall_enter_ns));
  });
  std::map<uint32_t, std::string> names;
  for (const auto& [record, dur_ns] : records) {
    const auto [name, is_new] = names.try_emplace(record.tgid);
    if (is_new) {
      if (const auto owner = FindThread(record.tgid)) name->second = owner->name;
    }
    open.push_back({.process = name->second,
                    .arg0 = ArgumentOf(record.syscall_number, record.syscall_operation),
                    .dur_ns = std::max<int64_t>(dur_ns, 0)});
  }
  return open;
}

CallCounterCost CallCounter::cost() const {
  return {.share = share_, .duty = duty_, .lost = engine_->ReadCounters().total.lost_records};
}

}  // namespace culprit::record
