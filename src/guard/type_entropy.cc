// SPDX-License-Identifier: Apache-2.0
#include "guard/type_entropy.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace culprit::guard {

// Squaring a number of [1, 2) doubles its logarithm: bit by bit.
uint64_t LogTwo(uint64_t value) {
  const auto whole = static_cast<uint64_t>(std::bit_width(value)) - 1;
  uint64_t part = value << (63 - whole);  // 1.63 fixed point
  uint64_t log = whole << 32;
  for (uint64_t bit = uint64_t{1} << 31; bit > 0; bit >>= 1) {
    const WideSum square = WideSum{part} * part;
    if ((square >> 127) != 0) {
      log |= bit;
      part = static_cast<uint64_t>(square >> 64);
    } else {
      part = static_cast<uint64_t>(square >> 63);
    }
  }
  return log;
}

TypeEntropy::TypeEntropy(std::vector<Weighted> shapes) : shapes_(std::move(shapes)) { Recount(); }

WideSum TypeEntropy::Scaled(uint64_t units) {
  if (units < 2) return 0;
  const auto [value, made] = scaled_.Insert(units);
  if (made) *value = WideSum{units} * LogTwo(units);
  return *value;
}

void TypeEntropy::Recount() {
  blocks_.clear();
  mixed_ = 0;
  for (const Weighted& shape : shapes_) {
    if (shape.units == 0) continue;
    if (shape.block >= blocks_.size()) blocks_.resize(shape.block + 1);
    blocks_[shape.block].units += shape.units;
    blocks_[shape.block].types[shape.type] += shape.units;
  }
  for (Block& block : blocks_) {
    for (const auto& [type, units] : block.types) block.inner += Scaled(units);
    mixed_ += block.types.size() > 1 ? 1 : 0;
  }
}

WideSum TypeEntropy::open() const {
  WideSum sum = 0;
  for (const Block& block : blocks_) {
    if (block.units > 0) sum += WideSum{block.units} * LogTwo(block.units) - block.inner;
  }
  return sum;
}

// What is observed in mixed blocks, by block, outcome and type.
void TypeEntropy::Gather(const std::vector<Observation>& observations) {
  parts_.clear();
  for (const Observation& seen : observations) {
    const Weighted& shape = shapes_[seen.shape];
    if (shape.units == 0 || blocks_[shape.block].types.size() < 2) continue;
    parts_.push_back({shape.block, seen.outcome, shape.type, shape.units});
  }
  std::sort(parts_.begin(), parts_.end(), [](const Part& x, const Part& y) {
    return std::tie(x.block, x.outcome, x.type) < std::tie(y.block, y.outcome, y.type);
  });
}

// The parts of one block against the block before. Rounding may make what is
// gained from nothing negative; that is nothing.
WideSum TypeEntropy::GainOfBlock(size_t begin, size_t end) {
  const Block& block = blocks_[parts_[begin].block];
  WideSum inner = block.inner;  // in the end of all parts and of the rest
  WideSum outer = 0;
  uint64_t rest = block.units;
  std::map<uint32_t, uint64_t> taken;
  for (size_t i = begin; i < end;) {
    uint64_t of_outcome = 0;
    const uint32_t outcome = parts_[i].outcome;
    while (i < end && parts_[i].outcome == outcome) {
      const uint32_t type = parts_[i].type;
      uint64_t units = 0;
      for (; i < end && parts_[i].outcome == outcome && parts_[i].type == type; ++i) {
        units += parts_[i].units;
      }
      inner += Scaled(units);
      taken[type] += units;
      of_outcome += units;
    }
    outer += Scaled(of_outcome);
    rest -= of_outcome;
  }
  outer += Scaled(rest);
  for (const auto& [type, units] : taken) {
    const uint64_t before = block.types.at(type);
    inner += Scaled(before - units);
    inner -= Scaled(before);
  }
  const WideSum was = Scaled(block.units) - block.inner;
  const WideSum is = outer > inner ? outer - inner : 0;
  return was > is ? was - is : 0;
}

WideSum TypeEntropy::Gain(const std::vector<Observation>& observations) {
  Gather(observations);
  WideSum gain = 0;
  for (size_t begin = 0; begin < parts_.size();) {
    size_t end = begin;
    while (end < parts_.size() && parts_[end].block == parts_[begin].block) ++end;
    gain += GainOfBlock(begin, end);
    begin = end;
  }
  return gain;
}

void TypeEntropy::Split(const std::vector<Observation>& observations) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> made;
  auto next = static_cast<uint32_t>(blocks_.size());
  for (const Observation& seen : observations) {
    Weighted& shape = shapes_[seen.shape];
    const auto [block, is_new] = made.try_emplace({shape.block, seen.outcome}, next);
    if (is_new) ++next;
    shape.block = block->second;
  }
  Recount();
}

}  // namespace culprit::guard
