// SPDX-License-Identifier: Apache-2.0
#include "cluster/symbol_words.h"

#include <algorithm>
#include <cstring>

namespace culprit::cluster {

Symbol SymbolWords::AddNamed(std::string_view function) {
  std::vector<uint32_t> ids;
  for (std::string& word : SplitWords(function)) {
    const auto next = static_cast<uint32_t>(word_ids_.size());
    ids.push_back(word_ids_.try_emplace(std::move(word), next).first->second);
  }
  std::sort(ids.begin(), ids.end());
  return Add(std::move(ids));
}

Symbol SymbolWords::AddUnnamed() { return Add({}); }

Symbol SymbolWords::Add(std::vector<uint32_t> words) {
  const auto symbol = static_cast<Symbol>(ends_.size());
  uint64_t mask = 0;
  for (const uint32_t word : words) mask |= uint64_t{1} << (word % 64);
  words_.insert(words_.end(), words.begin(), words.end());
  ends_.push_back(words_.size());
  masks_.push_back(mask);
  Symbol of_class = symbol;
  if (!words.empty()) {
    std::string key(words.size() * sizeof(uint32_t), '\0');
    std::memcpy(key.data(), words.data(), key.size());
    of_class = first_with_.try_emplace(std::move(key), symbol).first->second;
  }
  classes_.push_back(of_class);
  return symbol;
}

std::span<const uint32_t> SymbolWords::WordsOf(Symbol symbol) const {
  const size_t begin = symbol == 0 ? 0 : ends_[symbol - 1];
  return std::span(words_).subspan(begin, ends_[symbol] - begin);
}

Fixed SymbolWords::Substitution(Symbol f, Symbol g) const {
  if (classes_[f] == classes_[g]) return 0;
  if ((masks_[f] & masks_[g]) == 0) return kOne;
  const std::span<const uint32_t> a = WordsOf(f);
  const std::span<const uint32_t> b = WordsOf(g);
  uint64_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      ++common;
      ++i;
      ++j;
    } else if (a[i] < b[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  const uint64_t all = a.size() + b.size();
  const uint64_t share = ((all - 2 * common) << kFixedBits) / all;
  // Two classes differ in a word, however long their names are.
  return static_cast<Fixed>(std::max<uint64_t>(share, 1));
}

}  // namespace culprit::cluster
