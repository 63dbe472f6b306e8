// SPDX-License-Identifier: Apache-2.0
//
// Signature set tuples (003 §4.1, definitions 4 and 5): the wait, unwait and
// running signatures of a path segment as three sets. Waits ended by a device give
// their signature to the running set, beside the device's own: that is how the
// code that uses the disk and "DiskService" stand together in 003's example. A
// node without a signature adds nothing.
//
// TupleTable gives every distinct tuple a number. Signatures are those of one
// Evidence. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "causality/chain_forest.h"
#include "causality/evidence.h"
#include "causality/set_table.h"

namespace culprit::causality {

// The three sets as names, each sorted.
struct SignatureTuple {
  std::vector<std::string> wait;
  std::vector<std::string> unwait;
  std::vector<std::string> running;

  bool empty() const { return wait.empty() && unwait.empty() && running.empty(); }
  auto operator<=>(const SignatureTuple&) const = default;
};

using TupleId = uint32_t;
inline constexpr TupleId kEmptyTuple = 0;

class TupleTable {
 public:
  // The tuple of a segment, and of one that goes on with this node.
  TupleId With(TupleId tuple, const ChainNode& node);
  // Component-wise.
  bool Contains(TupleId whole, TupleId part) const { return sets_.IsSubset(part, whole); }
  // Every ⟨role, signature⟩ of the tuple as one number, ascending.
  std::span<const uint32_t> Items(TupleId tuple) const { return sets_.Items(tuple); }
  size_t size() const { return sets_.size(); }

  SignatureTuple Names(TupleId tuple, const Evidence& evidence) const;

 private:
  // The three sets in one: an item is 4 × signature + role.
  SetTable sets_;
};

}  // namespace culprit::causality
