// SPDX-License-Identifier: Apache-2.0
//
// What mining as a run reads and puts out, as bytes: the weighted stacks that all
// tasks read, and the patterns of a piece of the search. Canonical: equal values give
// equal bytes. Decoding trusts nothing: lengths are held against the bytes there are,
// and costs must add up without overflow. O(size); no state.
//
//   database := version count sequence*
//   sequence := same:varint more:varint symbol:varint{more} cost:varint
//               the first `same` symbols are those of the sequence before
//   subtree  := version too_many:u8 count pattern*
//   pattern  := length:varint symbol:varint{length} cost:varint
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mine/sequences.h"
#include "mine/subtree.h"

namespace culprit::scale {

std::string EncodeDatabase(const mine::WeightedSequences& database);
std::optional<mine::WeightedSequences> DecodeDatabase(std::string_view bytes);

std::string EncodeSubtree(const mine::Subtree& subtree);
std::optional<mine::Subtree> DecodeSubtree(std::string_view bytes);

}  // namespace culprit::scale
