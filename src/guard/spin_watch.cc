// SPDX-License-Identifier: Apache-2.0
#include "guard/spin_watch.h"

#include <algorithm>

#include "guard/loop_work.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kMega = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

uint64_t PpmOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<uint64_t>(WideSum{part} * kMega / whole);
}

}  // namespace

void SpinWatch::Use(const Profile& profile) {
  watched_.clear();
  usual_ns_ = UnitLengthsByTime(profile, kMega / 10);
}

void SpinWatch::Add(int64_t pid, const wire::Sample& sample) {
  const auto found = watched_.find({pid, sample.tid});
  if (found == watched_.end() || !found->second.since || sample.type == wire::kWholeIteration ||
      sample.begin_ns < found->second.since->time_ns) {
    return;
  }
  Watched& watched = found->second;
  ++watched.samples;
  watched.usual += sample.wall_ns > usual_ns_[watched.loop] / kShorter ? 1 : 0;
}

bool SpinWatch::IsFast(int64_t pid, const ThreadUnits& thread, uint64_t now_ns) {
  if (thread.loop >= usual_ns_.size() || usual_ns_[thread.loop] == 0) return false;
  const auto [it, first] = watched_.try_emplace(Key{pid, thread.tid});
  Watched& watched = it->second;
  const bool fast = !first && thread.units >= watched.last.units &&
                    WideSum{thread.units - watched.last.units} * kSecond >=
                        WideSum{now_ns - watched.last.time_ns} * kFewestUnits;
  if (!fast) {
    watched = {.last = {.time_ns = now_ns, .units = thread.units},
               .quiet_until_ns = watched.quiet_until_ns};
  }
  return fast;
}

bool SpinWatch::NeverSleeps(const Moment& from, const Moment& to) {
  const uint64_t time_ns = to.time_ns - from.time_ns;
  if (!from.has_life || to.life.cpu_ns < from.life.cpu_ns ||
      to.life.run_delay_ns < from.life.run_delay_ns) {
    return false;
  }
  const uint64_t cpu_ns = to.life.cpu_ns - from.life.cpu_ns;
  const uint64_t delay_ns = to.life.run_delay_ns - from.life.run_delay_ns;
  return PpmOf(cpu_ns + delay_ns, time_ns) >= kBusyPpm && PpmOf(cpu_ns, time_ns) >= kLeastCpuPpm;
}

bool SpinWatch::GetsNowhere(const Watched& watched) {
  return watched.samples >= kFewestSamples && PpmOf(watched.usual, watched.samples) <= kUsualPpm;
}

bool SpinWatch::IsSuspect(int64_t pid, int64_t tid, uint64_t now_ns) const {
  const auto found = watched_.find({pid, tid});
  return found != watched_.end() && GetsNowhere(found->second) &&
         now_ns >= found->second.quiet_until_ns;
}

std::optional<Spin> SpinWatch::Look(int64_t pid, const ThreadUnits& thread, const ThreadLife& life,
                                    uint64_t read_bytes, uint64_t now_ns) {
  Watched& watched = watched_[{pid, thread.tid}];
  const Moment now = {.time_ns = now_ns,
                      .units = thread.units,
                      .life = life,
                      .has_life = true,
                      .read_bytes = read_bytes};
  const Moment last = std::exchange(watched.last, now);
  const bool works = (watched.samples >= kFewestSamples && !GetsNowhere(watched)) ||
                     now.read_bytes >= last.read_bytes + (now.units - last.units);
  if (works || !NeverSleeps(last, now) || watched.loop != thread.loop) {
    watched = {
        .last = now, .since = now, .loop = thread.loop, .quiet_until_ns = watched.quiet_until_ns};
    return std::nullopt;
  }
  const uint64_t wall_ns = now_ns - watched.since->time_ns;
  if (!GetsNowhere(watched) || wall_ns < kSpinNs) return std::nullopt;
  if (watched.told || now_ns < watched.quiet_until_ns) {
    // Its end shows in what comes now.
    watched.samples = 0;
    watched.usual = 0;
    return std::nullopt;
  }
  watched.told = true;
  watched.quiet_until_ns = now_ns + kQuietNs;
  return Spin{.tid = thread.tid,
              .loop = thread.loop,
              .begin_ns = watched.since->time_ns,
              .wall_ns = wall_ns,
              .cpu_ns = life.cpu_ns - watched.since->life.cpu_ns,
              .run_delay_ns = life.run_delay_ns - watched.since->life.run_delay_ns,
              .units = thread.units - watched.since->units,
              .usual_ns = usual_ns_[thread.loop]};
}

void SpinWatch::KeepOnly(int64_t pid, const std::set<int64_t>& threads) {
  std::erase_if(watched_, [&](const auto& entry) {
    return entry.first.first == pid && !threads.contains(entry.first.second);
  });
}

void SpinWatch::Forget(int64_t pid) {
  std::erase_if(watched_, [&](const auto& entry) { return entry.first.first == pid; });
}

}  // namespace culprit::guard
