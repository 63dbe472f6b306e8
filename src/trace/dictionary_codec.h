// SPDX-License-Identifier: Apache-2.0
//
// Dictionary, metadata and instances as bytes: the payloads of the sections
// DICT, META and INST of a native trace (docs/format.md).
//
// A dictionary goes out in pieces. Each piece says from which id on it begins
// in every table, so a reader knows when one was lost: it then takes the
// missing rows for [lost] and keeps all later ids right. For that, ids of the
// file are translated to ids of the dictionary being built; in an undamaged
// file they are the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "trace/trace.h"

namespace culprit::trace {

// How much of a dictionary has been written.
struct DictionaryMark {
  size_t strings = 0;
  size_t modules = 0;
  size_t frames = 0;
  size_t stacks = 0;
  std::vector<Process> processes;  // as written, to see late changes
  std::vector<Thread> threads;
};

// The next piece since `mark`, at most about `max_bytes` long, and advances the
// mark; empty when there is nothing new. Changed processes and threads are
// written again.
std::string EncodeDictionaryPiece(const Dictionary& dictionary, DictionaryMark& mark,
                                  size_t max_bytes);

// From ids of a file to ids of the dictionary read from it.
struct DictionaryMap {
  std::vector<StringId> strings;
  std::vector<ModuleId> modules;
  std::vector<FrameId> frames;
  std::vector<StackId> stacks;
  bool identity = true;  // so far every id is its own translation
};

// Adds a piece. False: damaged; the dictionary then holds what came before the
// damage. `may_fill`: an earlier piece is known to be missing.
bool DecodeDictionaryPiece(std::string_view piece, bool may_fill, Dictionary& dictionary,
                           DictionaryMap& map, Diagnostics& diagnostics);

std::string EncodeMetadata(const Metadata& metadata);
bool DecodeMetadata(std::string_view payload, Metadata& metadata);

std::string EncodeInstances(const Instance* begin, const Instance* end);
// Appends; instances that refer to nothing or end before they begin are
// counted and left out.
bool DecodeInstances(std::string_view payload, const DictionaryMap& map,
                     const Dictionary& dictionary, std::vector<Instance>& instances,
                     Diagnostics& diagnostics);

}  // namespace culprit::trace
