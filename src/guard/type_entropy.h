// SPDX-License-Identifier: Apache-2.0
//
// TypeEntropy: what is still open about the types of units when some contexts are
// known. Units (as weighted shapes) stand in blocks of equal observations; what is
// open is the sum over blocks of W log W - sum of w log w, in bits times 2^32,
// where w are the weights of the types in the block. Gain() says how much another
// observation would settle; Split() makes it. Logarithms by integers alone, so
// that all machines choose the same guards.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/flat_map.h"
#include "guard/latency_stats.h"

namespace culprit::guard {

// log2(value) * 2^32, rounded down; value > 0.
uint64_t LogTwo(uint64_t value);

// One shape with an observation; shapes that are not named observe nothing.
struct Observation {
  uint32_t shape = 0;
  uint32_t outcome = 0;
};

class TypeEntropy {
 public:
  struct Weighted {
    uint32_t type = 0;
    uint32_t block = 0;  // to begin with
    uint64_t units = 0;
  };
  explicit TypeEntropy(std::vector<Weighted> shapes);

  // In bits x 2^32.
  WideSum open() const;
  WideSum Gain(const std::vector<Observation>& observations);
  void Split(const std::vector<Observation>& observations);
  bool settled() const { return mixed_ == 0; }

 private:
  struct Block {
    uint64_t units = 0;
    std::map<uint32_t, uint64_t> types;
    WideSum inner = 0;  // sum of w log w
  };
  struct Part {
    uint32_t block = 0;
    uint32_t outcome = 0;
    uint32_t type = 0;
    uint64_t units = 0;
  };
  WideSum Scaled(uint64_t units);  // w log w
  void Gather(const std::vector<Observation>& observations);
  WideSum GainOfBlock(size_t begin, size_t end);
  void Recount();

  std::vector<Weighted> shapes_;
  std::vector<Block> blocks_;
  size_t mixed_ = 0;  // blocks of several types
  std::vector<Part> parts_;
  FlatMap<uint64_t, WideSum> scaled_;
};

}  // namespace culprit::guard
