// SPDX-License-Identifier: Apache-2.0
#include "synth/random.h"

namespace culprit::synth {
namespace {

// Quantiles of the exponential distribution with mean 1, times 1024.
constexpr std::array<uint32_t, 128> kExponential = {
    4,    12,   20,   28,   37,   45,   53,   62,   70,   79,   88,   96,   105,  114,  123,  132,
    141,  151,  160,  169,  179,  188,  198,  208,  218,  227,  238,  248,  258,  268,  279,  289,
    300,  311,  322,  333,  344,  355,  366,  378,  390,  401,  413,  425,  437,  450,  462,  475,
    488,  501,  514,  527,  541,  554,  568,  582,  596,  611,  625,  640,  655,  671,  686,  702,
    718,  734,  751,  767,  784,  802,  819,  837,  856,  874,  893,  913,  932,  952,  973,  994,
    1015, 1037, 1059, 1082, 1105, 1129, 1153, 1178, 1204, 1230, 1257, 1285, 1313, 1343, 1373, 1404,
    1436, 1469, 1503, 1538, 1575, 1613, 1652, 1693, 1736, 1780, 1827, 1876, 1927, 1981, 2038, 2098,
    2162, 2230, 2303, 2382, 2468, 2561, 2663, 2777, 2905, 3052, 3223, 3428, 3686, 4030, 4553, 5678,
};

// Quantiles of a lognormal distribution with median 1 and sigma 1.1, times 1024.
constexpr std::array<uint32_t, 128> kLognormal = {
    55,   85,   106,  124,  140,  155,  169,   183,   196,  209,  222,  234,  246,  259,  271,
    283,  295,  307,  319,  331,  343,  355,   368,   380,  392,  404,  417,  430,  442,  455,
    468,  481,  494,  508,  521,  535,  548,   562,   577,  591,  605,  620,  635,  650,  666,
    681,  697,  713,  729,  746,  763,  780,   798,   815,  834,  852,  871,  890,  909,  929,
    950,  970,  991,  1013, 1035, 1058, 1081,  1104,  1128, 1153, 1178, 1204, 1231, 1258, 1286,
    1315, 1344, 1374, 1405, 1438, 1470, 1504,  1539,  1575, 1613, 1651, 1691, 1732, 1775, 1819,
    1864, 1912, 1961, 2012, 2066, 2122, 2180,  2241,  2304, 2371, 2441, 2515, 2592, 2674, 2761,
    2853, 2951, 3055, 3167, 3287, 3416, 3555,  3707,  3873, 4054, 4256, 4480, 4732, 5019, 5350,
    5738, 6201, 6771, 7498, 8476, 9911, 12386, 19102,
};

uint64_t RotateLeft(uint64_t value, int bits) { return (value << bits) | (value >> (64 - bits)); }

// A point of the quantile function between two table rows. The product stays
// below 2^63 for means up to a few hundred years.
int64_t Quantile(const std::array<uint32_t, 128>& table, uint64_t random, int64_t scale) {
  const size_t row = random >> 57;
  const uint64_t fraction = (random >> 25) & 0xffff;
  const uint64_t low = table[row];
  const uint64_t high = row + 1 < table.size() ? table[row + 1] : low;
  const uint64_t factor = low + (((high - low) * fraction) >> 16);
  return static_cast<int64_t>((static_cast<uint64_t>(scale) * factor) >> 10);
}

}  // namespace

uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

Random::Random(uint64_t seed) {
  for (uint64_t i = 0; i < state_.size(); ++i) state_[i] = Mix(seed + i * 0x9e3779b97f4a7c15ULL);
}

uint64_t Random::Next() {
  const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

int64_t Random::Exponential(int64_t mean) { return Quantile(kExponential, Next(), mean); }

int64_t Random::HeavyTailed(int64_t median) { return Quantile(kLognormal, Next(), median); }

}  // namespace culprit::synth
