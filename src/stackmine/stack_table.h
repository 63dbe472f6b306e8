// SPDX-License-Identifier: Apache-2.0
//
// StackTable: the distinct stacks of many traces, by the names of their frames.
// A frame is "module!function" ("module!+0x12ab" where it has no name), so one
// function is one symbol whatever trace, line or address it was seen at. Stacks
// are a trie of ⟨caller's stack, frame⟩; equal stacks are one index. Symbols and
// indexes are dense and given in order of first use, or in an order that depends on
// names alone (MakeCanonical). One thread at a time; interning costs a hash probe, a
// stack about 16 bytes, a frame its name and 40. Names never move.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/large_memory.h"
#include "base/text_store.h"
#include "trace/dictionary.h"

namespace culprit::stackmine {

using FrameSymbol = uint32_t;
using StackIndex = uint32_t;
inline constexpr StackIndex kNoStack = UINT32_MAX;

class StackTable {
 public:
  // `function_at`: where the function begins in `name`; `named`: it is a name
  // and not an address.
  FrameSymbol InternFrame(std::string_view name, uint32_t function_at, bool named);
  StackIndex InternStack(StackIndex parent, FrameSymbol frame);
  // The same for one that is known not to be there yet, without looking.
  StackIndex AppendStack(StackIndex parent, FrameSymbol frame);
  // Room for so many, before the first.
  void Reserve(size_t stacks);
  void ReserveFrames(size_t frames);

  // Puts the stacks into canonical order (corpus/call_forest.h) and the frames into that
  // of their first use. By old index, the new one.
  std::vector<StackIndex> MakeCanonical();

  // The symbol of a name, if a stack has it.
  std::optional<FrameSymbol> FindFrame(std::string_view name) const;

  size_t frames() const { return frames_.size(); }
  size_t stacks() const { return stacks_.size(); }
  std::string_view FrameName(FrameSymbol frame) const { return frames_[frame].name; }
  std::string_view Function(FrameSymbol frame) const {
    return FrameName(frame).substr(frames_[frame].function_at);
  }
  std::string_view Module(FrameSymbol frame) const;
  bool Named(FrameSymbol frame) const { return frames_[frame].named; }
  StackIndex Parent(StackIndex stack) const { return stacks_[stack].parent; }
  FrameSymbol Leaf(StackIndex stack) const { return stacks_[stack].frame; }
  // Replaces `frames` by those of the stack, caller first; none for kNoStack.
  void Frames(StackIndex stack, std::vector<FrameSymbol>& frames) const;

 private:
  friend std::vector<StackIndex> BringAll(const StackTable& from, StackTable& to);

  struct FrameRow {
    std::string_view name;
    uint64_t hash = 0;  // of the name
    uint32_t function_at = 0;
    bool named = true;
  };
  FrameSymbol InternFrame(const FrameRow& row);
  size_t FrameSlot(std::string_view name, uint64_t hash) const;
  void IndexFrames(size_t slots);
  size_t Slot(StackIndex parent, FrameSymbol frame) const;
  void Index(size_t slots);

  struct StackRow {
    StackIndex parent = kNoStack;
    FrameSymbol frame = 0;
  };

  LargeVector<FrameRow> frames_;
  LargeVector<FrameSymbol> frame_slots_;  // where frames_ are found by their hash
  TextStore names_;
  LargeVector<StackRow> stacks_;
  LargeVector<StackIndex> slots_;  // where stacks_ are found by their hash, or kNoStack
  size_t indexed_ = 0;             // of stacks_; the others were appended since
};

// Brings stacks of a trace's dictionary into a table; remembers what it brought.
class DictionaryStacks {
 public:
  DictionaryStacks(const trace::Dictionary& from, StackTable& to);
  StackIndex Bring(trace::StackId stack);
  // Whether no two frames of the dictionary have had one name yet, nor a frame one
  // that was there before. Different stacks are then different in the table too.
  bool all_distinct() const { return all_distinct_; }
  // Somebody else is about to add stacks of frames that the dictionary may have.
  void ExpectOthers() { all_distinct_ = false; }

 private:
  FrameSymbol BringFrame(trace::FrameId frame);

  const trace::Dictionary& from_;
  StackTable& to_;
  std::vector<FrameSymbol> frames_;
  std::vector<StackIndex> stacks_;
  std::vector<trace::StackId> path_;
  std::string name_;  // of the frame at hand
  bool all_distinct_;
};

// The indexes that the stacks of `from` have in `to`, by index in `from`.
std::vector<StackIndex> BringAll(const StackTable& from, StackTable& to);

}  // namespace culprit::stackmine
