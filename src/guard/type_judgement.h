// SPDX-License-Identifier: Apache-2.0
//
// Judge: how many units of training a runtime with some guards would give their
// own type, the truth being their full call trees. Types are known from one part
// of the units and tried on another, or on the same.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

struct Judgement {
  struct Wrong {
    uint32_t shape = 0;
    uint32_t taken_for = 0;  // a type
  };
  uint64_t units = 0;
  uint64_t right = 0;
  std::vector<Wrong> wrong;
};

// As the runtime infers types, or by likeness alone. Guards are chosen by the latter: those
// that part types which were hardly seen from the rest are also what tells types apart when
// units do something new besides.
enum class Inference { kOfTheRuntime, kMostAlike };

// Halves as in context_bits.h: `known` tells what contexts types have, units of
// `judged` are tried.
Judgement Judge(const Profile& profile, const std::vector<Guard>& guards, uint32_t known,
                uint32_t judged, Inference inference = Inference::kMostAlike);

}  // namespace culprit::guard
