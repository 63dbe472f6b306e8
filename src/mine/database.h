// SPDX-License-Identifier: Apache-2.0
//
// Database: sequences of items, each with a cost. Passive data; read-only once
// made, so shared by threads.
#pragma once

#include <cstdint>
#include <vector>

#include "mine/sequence_list.h"

namespace culprit::mine {

struct Database {
  SequenceList sequences;
  std::vector<int64_t> costs;  // of the sequences

  size_t size() const { return costs.size(); }
  size_t Bytes() const { return sequences.Bytes() + costs.size() * sizeof(int64_t); }
};

}  // namespace culprit::mine
