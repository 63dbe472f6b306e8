// SPDX-License-Identifier: Apache-2.0
//
// FrameNames: the names a part needs, each once, numbered in order of first use,
// so that a part refers to a frame by a small number. One part, one thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/json_writer.h"
#include "stackmine/stack_table.h"

namespace culprit::analyze {

class FrameNames {
 public:
  explicit FrameNames(const stackmine::StackTable& stacks) : stacks_(stacks) {}

  uint32_t Number(stackmine::FrameSymbol frame) {
    const auto [it, added] = numbers_.try_emplace(frame, static_cast<uint32_t>(order_.size()));
    if (added) order_.push_back(frame);
    return it->second;
  }
  void WriteFrames(const std::vector<stackmine::FrameSymbol>& frames, JsonWriter& json) {
    json.BeginArray();
    for (const stackmine::FrameSymbol frame : frames) json.Uint(Number(frame));
    json.EndArray();
  }
  // The names so far, as the field "names".
  void WriteNames(JsonWriter& json) const {
    json.Key("names").BeginArray();
    for (const stackmine::FrameSymbol frame : order_) json.String(stacks_.FrameName(frame));
    json.EndArray();
  }

 private:
  const stackmine::StackTable& stacks_;
  std::unordered_map<stackmine::FrameSymbol, uint32_t> numbers_;
  std::vector<stackmine::FrameSymbol> order_;
};

}  // namespace culprit::analyze
