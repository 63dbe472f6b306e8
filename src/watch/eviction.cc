// SPDX-License-Identifier: Apache-2.0
#include "watch/eviction.h"

#include <algorithm>
#include <deque>
#include <map>

#include "corpus/corpus.h"
#include "corpus/slow_unit_labels.h"

namespace culprit::watch {

std::vector<std::string> ToEvict(const std::vector<corpus::TraceRow>& rows, uint64_t max_bytes) {
  std::vector<const corpus::TraceRow*> by_age;
  uint64_t bytes = 0;
  for (const corpus::TraceRow& row : rows) {
    by_age.push_back(&row);
    bytes += row.bytes;
  }
  std::stable_sort(by_age.begin(), by_age.end(), [](const auto* a, const auto* b) {
    return a->added_ns != b->added_ns ? a->added_ns < b->added_ns : a->id < b->id;
  });
  std::map<std::string, std::deque<const corpus::TraceRow*>> types;  // oldest first
  for (const corpus::TraceRow* row : by_age) {
    const auto label = row->labels.find(corpus::kSlowTypeLabel);
    types[label == row->labels.end() ? std::string() : label->second].push_back(row);
  }
  std::vector<std::string> evicted;
  while (bytes > max_bytes && evicted.size() + 1 < rows.size()) {
    auto most = types.begin();
    for (auto it = types.begin(); it != types.end(); ++it) {
      if (it->second.size() > most->second.size()) most = it;
    }
    // All types have one each: then it goes by age.
    if (most->second.size() == 1) {
      for (auto it = types.begin(); it != types.end(); ++it) {
        if (it->second.front()->added_ns < most->second.front()->added_ns) most = it;
      }
    }
    bytes -= most->second.front()->bytes;
    evicted.push_back(most->second.front()->name);
    most->second.pop_front();
    if (most->second.empty()) types.erase(most);
  }
  return evicted;
}

Result<uint64_t> Evict(const std::string& corpus_path, uint64_t max_bytes) {
  CULPRIT_ASSIGN(corpus::Corpus corpus, corpus::Corpus::Open(corpus_path));
  CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> rows, corpus.List());
  const std::vector<std::string> names = ToEvict(rows, max_bytes);
  if (names.empty()) return uint64_t{0};
  return corpus.Remove(names);
}

}  // namespace culprit::watch
