// SPDX-License-Identifier: Apache-2.0
//
// SymbolWords: what the alignment of two patterns knows of its symbols. A
// symbol is a frame identity: the function, with the module only for unnamed
// frames; the caller adds each identity once. Each has the sorted multiset of
// the words of its name; an unnamed one has none. SplitWords cuts a function
// name into words: at case changes, digits, '_', '::' and template brackets;
// parameters and return types are stripped, the module is no part of it.
//
// Symbols of equal words (`_XFoo` and `XFoo`) match each other in an alignment:
// they are one class, named by its first symbol. A symbol without words is a
// class of its own. Any number of threads may ask while nobody adds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/fixed.h"

namespace culprit::cluster {

using Symbol = uint32_t;
using PatternSymbols = std::vector<Symbol>;  // caller first

// Lower-case words in the order of the name; runs of digits and the sign of an
// operator are words too. O(length).
std::vector<std::string> SplitWords(std::string_view function);

class SymbolWords {
 public:
  // Symbols are numbered 0, 1, 2 ... in the order of their adding.
  Symbol AddNamed(std::string_view function);
  Symbol AddUnnamed();

  size_t size() const { return ends_.size(); }
  // 1 - 2 * common / (words(f) + words(g)), common counted as multisets; 0 for
  // f == g and for names of equal words, kOne if either has no words. Never 0
  // for symbols of two classes.
  Fixed Substitution(Symbol f, Symbol g) const;
  Symbol ClassOf(Symbol symbol) const { return classes_[symbol]; }
  // Ids of its words, ascending; a word that stands twice is there twice.
  std::span<const uint32_t> WordsOf(Symbol symbol) const;

 private:
  Symbol Add(std::vector<uint32_t> words);

  std::unordered_map<std::string, uint32_t> word_ids_;
  std::unordered_map<std::string, Symbol> first_with_;  // by the words' bytes
  std::vector<uint32_t> words_;                         // ids, sorted within a symbol
  std::vector<size_t> ends_;
  std::vector<Symbol> classes_;
  std::vector<uint64_t> masks_;  // of the words; disjoint masks: nothing in common
};

}  // namespace culprit::cluster
