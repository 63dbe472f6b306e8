// SPDX-License-Identifier: Apache-2.0
//
// Random: the generator behind every simulated choice (xoshiro256**, seeded by
// splitmix64). Its numbers are the same on every compiler, library and
// processor: integer arithmetic only, distributions by tables of quantiles.
// That makes a corpus a function of its seed, byte for byte. One object per
// trace; a few nanoseconds a number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace culprit::synth {

// One step of splitmix64: a good 64-bit hash of an integer.
uint64_t Mix(uint64_t value);

class Random {
 public:
  explicit Random(uint64_t seed);
  // Independent streams of one seed: stream i never depends on stream j.
  Random(uint64_t seed, uint64_t stream) : Random(Mix(seed) ^ Mix(~stream)) {}

  uint64_t Next();
  // Uniform in [0, bound); 0 for bound 0. Bounds up to 2^32.
  uint64_t Below(uint64_t bound) { return ((Next() >> 32) * bound) >> 32; }
  // Uniform in [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool Percent(uint64_t percent) { return Below(100) < percent; }
  // Small indices are likelier than large ones, roughly as -ln(index / size).
  // `size` is not 0.
  size_t Skewed(size_t size) { return ((Below(size) + 1) * (Below(size) + 1) - 1) / size; }
  // Exponential with the given mean; never above about 5.5 means.
  int64_t Exponential(int64_t mean);
  // Lognormal with the given median (sigma 1.1): mean 1.8, up to about 19 medians.
  int64_t HeavyTailed(int64_t median);

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace culprit::synth
