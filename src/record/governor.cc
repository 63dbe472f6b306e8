// SPDX-License-Identifier: Apache-2.0
#include "record/governor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace culprit::record {
namespace {

// How long it must be cheap before a level is given back, and how long that may grow.
constexpr int64_t kPatienceNs = 800'000'000;
constexpr int64_t kMaxPatienceNs = 100'000'000'000;
constexpr double kCheap = 0.4;  // of what may be spent
// Of the budget may be spent: turns differ, and what is spent before a turn is over
// is not had back.
constexpr double kAim = 0.8;
constexpr double kFarTooDear = 3;   // times the budget: two levels at once
constexpr double kWayTooDear = 10;  // four
// To look into the ring now and then costs something whatever is left out: so
// much of a CPU, one part in 200, is not held against a level.
constexpr int64_t kFreeShare = 200;

struct Step {
  int64_t min_wait_ns;
  bool waker_stacks;
  bool syscall_stacks;
  int64_t min_syscall_ns;
  int64_t period_factor;
  double duty;
};

// Stacks of wakers go first: a third of the stacks, and every wait keeps its
// own. Then short waits, which are most of the waits and little of the time, and most
// samples: of a program with deep stacks a thousand a second are two hundredths of a
// CPU, and a quarter of them tells nearly as much. To
// look at a switch and to leave it out costs something, too: where there are too
// many of them, only not to look helps.
constexpr std::array<Step, Governor::kLevels> kSteps = {{
    {0, true, true, 0, 1, 1},
    {0, false, false, 0, 1, 1},
    {50'000, true, false, 0, 2, 1},
    {200'000, true, false, 10'000, 4, 1},
    {1'000'000, true, false, 50'000, 4, 1},
    {5'000'000, true, false, 200'000, 4, 1},
    {5'000'000, true, false, 1'000'000, 4, 0.5},
    {5'000'000, true, false, 1'000'000, 5, 0.25},
    {5'000'000, true, false, 1'000'000, 10, 0.125},
    {5'000'000, true, false, 1'000'000, 10, 0.0625},
    {5'000'000, true, false, 1'000'000, 20, 0},
}};

constexpr int kFirstWithThreshold = 2;
constexpr int kFirstWithPauses = 6;

// Up to the first level with pauses what a level costs is only known by trying
// it. From there on it is in proportion to the time in which it looks. Once short
// waits are left out, longer ones are too few to make up for much.
int NextLevel(int level, double share, double budget) {
  if (level < kFirstWithThreshold) {
    if (share > kWayTooDear * budget) return level + 4;
    return level + (share > kFarTooDear * budget ? 2 : 1);
  }
  if (level + 2 < kFirstWithPauses && share <= kFarTooDear * budget) return level + 1;
  const double duty = kSteps[static_cast<size_t>(level)].duty * budget / share;
  int next = level + 1;
  while (next + 1 < Governor::kLevels && kSteps[static_cast<size_t>(next)].duty > duty) {
    // Longer waits cost a little less, so that may do.
    if (next == kFirstWithPauses - 1 && share < kFarTooDear * budget) break;
    ++next;
  }
  return next;
}

}  // namespace

Governor::Governor(double budget, int64_t min_wait_ns, int64_t sample_period_ns)
    : budget_(budget * kAim),
      min_wait_ns_(min_wait_ns),
      sample_period_ns_(sample_period_ns),
      patience_ns_(kPatienceNs) {}

double Governor::Share(const Cost& cost) {
  const double floor_ns = kFloorShare * static_cast<double>(cost.wall_ns);
  const double base_ns = std::max(static_cast<double>(cost.busy_ns), floor_ns);
  return base_ns <= 0 ? 0 : static_cast<double>(cost.kernel_ns + cost.own_ns) / base_ns;
}

Level Governor::At(int level) const {
  const Step& step = kSteps[static_cast<size_t>(std::clamp(level, 0, kLevels - 1))];
  return {.min_wait_ns = std::max(step.min_wait_ns, min_wait_ns_),
          .waker_stacks = step.waker_stacks,
          .syscall_stacks = step.syscall_stacks,
          .min_syscall_ns = step.min_syscall_ns,
          .sample_period_ns = sample_period_ns_ * step.period_factor,
          .duty = step.duty};
}

bool Governor::Turn(const Cost& turn, bool ring_full) {
  if (budget_ <= 0 || turn.wall_ns <= 0) return false;
  Cost counted = turn;
  counted.own_ns = std::max<int64_t>(0, turn.own_ns - turn.wall_ns / kFreeShare);
  const double share = Share(counted);
  const int before = level_;
  if (share > budget_ || ring_full) {
    // It was tried and was too dear: wait longer before the next try.
    if (level_ < highest_) patience_ns_ = std::min(patience_ns_ * 2, kMaxPatienceNs);
    level_ = std::min(NextLevel(level_, share, budget_), kLevels - 1);
    highest_ = std::max(highest_, level_);
    cheap_ns_ = 0;
  } else if (share < kCheap * budget_ && level_ > 0) {
    cheap_ns_ += turn.wall_ns;
    if (cheap_ns_ >= patience_ns_) {
      --level_;
      cheap_ns_ = 0;
    }
  } else {
    cheap_ns_ = 0;
  }
  return level_ != before;
}

std::string Governor::Describe() const {
  const Level level = current();
  std::string text = "level " + std::to_string(level_) + ": ";
  text += level.min_wait_ns == 0 ? "all waits" : "waits from " + FormatDuration(level.min_wait_ns);
  if (!level.waker_stacks) text += ", no stacks of wakers";
  if (level.duty == 0) {
    text += ", switches only as sums";
  } else if (level.duty < 1) {
    text += ", in one of " + std::to_string(std::lround(1 / level.duty)) + " moments";
  }
  if (level.sample_period_ns > 0) {
    text += ", samples every " + FormatDuration(level.sample_period_ns);
  }
  return text;
}

}  // namespace culprit::record
