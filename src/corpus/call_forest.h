// SPDX-License-Identifier: Apache-2.0
//
// CallForest: stacks as ⟨caller's stack, name of the frame⟩, and an order of them that
// depends on nothing but the names: stacks are ordered as sequences of frames, caller
// first, a caller before what it calls, and frames by a hash of their names. So the
// stacks of a trace come in the same order as the same stacks among those of thousands,
// and to tell which they are it is enough to say of each whether it is there.
//
//   forest := name:string... frames:varint count:varint back{count} symbol{count}
//
// `back` is how far back the caller's stack stands, 0: there is none. Names beyond
// `frames` are no frames'. Ordering is linear, but for sorting the names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace culprit::corpus {

inline constexpr uint32_t kNoCall = UINT32_MAX;

struct CallForest {
  std::vector<std::string_view> names;  // owned by somebody else
  std::vector<uint64_t> hashes;         // of names
  std::vector<uint32_t> parents;        // a smaller number, or kNoCall
  std::vector<uint32_t> symbols;        // places of names

  size_t size() const { return parents.size(); }
};

uint64_t HashOfName(std::string_view name);

// The numbers of the stacks in canonical order. No two stacks may be equal.
std::vector<uint32_t> CanonicalOrder(const CallForest& forest);
// Whether they stand in that order, and names in the order of their first use by them.
bool IsCanonical(const CallForest& forest, size_t frames);

// Writes the stacks in this order, which has callers first, and the names in the order
// of first use, and behind them `other_names`.
void WriteForest(const CallForest& forest, std::span<const uint32_t> order,
                 std::span<const std::string_view> other_names, ByteWriter& out);
// Views into what is read. False for what is no forest.
bool ReadForest(ByteReader& in, CallForest& forest, size_t& frames);

}  // namespace culprit::corpus
