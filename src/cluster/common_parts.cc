// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <span>

#include "cluster/alignment.h"
#include "cluster/pattern_clusters.h"

namespace culprit::cluster {
namespace {

// What all members so far have in common: for each of its frames the place in
// each of these members.
struct Common {
  PatternSymbols symbols;                     // those of the first member
  std::vector<std::vector<size_t>> place_in;  // by member, by frame
};

// Only the leaf-most frames of a very long member can be aligned.
size_t SkippedFrames(const PatternSymbols& member) {
  return member.size() - std::min(member.size(), kMaxFrames);
}

// Keeps of the common part what `member` has, too.
void Meet(const PatternSymbols& member, const SymbolWords& words, Alignment& alignment,
          Common& common) {
  const size_t skipped = SkippedFrames(member);
  const size_t columns = common.symbols.size();
  const size_t rows = member.size() - skipped;
  std::vector<Fixed> costs;
  for (size_t j = skipped; j < member.size(); ++j) {
    for (const Symbol symbol : common.symbols) {
      costs.push_back(words.Substitution(symbol, member[j]));
    }
  }
  std::vector<const Fixed*> row_costs;
  for (size_t j = 0; j < rows; ++j) row_costs.push_back(costs.data() + j * columns);

  std::vector<std::pair<size_t, size_t>> matches;  // frame of the common part, place in member
  size_t i = columns;
  size_t j = member.size();
  for (const Step step : alignment.Align(columns, row_costs, true)) {
    if (step != Step::kInsertion) --i;
    if (step != Step::kDeletion) --j;
    if (step == Step::kMatch) matches.emplace_back(i, j);
  }
  std::reverse(matches.begin(), matches.end());

  Common kept;
  kept.place_in.resize(common.place_in.size() + 1);
  for (const auto& [frame, place] : matches) {
    kept.symbols.push_back(common.symbols[frame]);
    for (size_t m = 0; m < common.place_in.size(); ++m) {
      kept.place_in[m].push_back(common.place_in[m][frame]);
    }
    kept.place_in.back().push_back(place);
  }
  common = std::move(kept);
}

Common CommonOf(const std::vector<PatternSymbols>& members, const SymbolWords& words) {
  Common common;
  const PatternSymbols& first = members.front();
  common.place_in.resize(1);
  for (size_t i = SkippedFrames(first); i < first.size(); ++i) {
    common.symbols.push_back(first[i]);
    common.place_in[0].push_back(i);
  }
  Alignment alignment;
  for (size_t m = 1; m < members.size(); ++m) Meet(members[m], words, alignment, common);
  return common;
}

// What each member has between two frames of the common part; nothing if none
// has anything.
void AddVarying(const std::vector<PatternSymbols>& members, const std::vector<size_t>& begins,
                const std::vector<size_t>& ends, std::vector<CommonSegment>& segments) {
  if (begins == ends) return;
  CommonSegment segment;
  std::map<PatternSymbols, uint32_t> number_of;
  for (size_t m = 0; m < members.size(); ++m) {
    const auto from = members[m].begin();
    PatternSymbols part(from + static_cast<ptrdiff_t>(begins[m]),
                        from + static_cast<ptrdiff_t>(ends[m]));
    const auto next = static_cast<uint32_t>(segment.variants.size());
    const auto [found, is_new] = number_of.try_emplace(part, next);
    if (is_new) segment.variants.push_back(std::move(part));
    segment.variant_of_member.push_back(found->second);
  }
  segments.push_back(std::move(segment));
}

}  // namespace

std::vector<CommonSegment> CommonParts(const std::vector<PatternSymbols>& members,
                                       const SymbolWords& words) {
  std::vector<CommonSegment> segments;
  if (members.empty()) return segments;
  const Common common = CommonOf(members, words);
  std::vector<size_t> begins(members.size());
  std::vector<size_t> ends(members.size());
  for (size_t frame = 0; frame < common.symbols.size(); ++frame) {
    for (size_t m = 0; m < members.size(); ++m) ends[m] = common.place_in[m][frame];
    AddVarying(members, begins, ends, segments);
    if (segments.empty() || segments.back().shared.empty()) segments.emplace_back();
    segments.back().shared.push_back(common.symbols[frame]);
    for (size_t m = 0; m < members.size(); ++m) begins[m] = ends[m] + 1;
  }
  for (size_t m = 0; m < members.size(); ++m) ends[m] = members[m].size();
  AddVarying(members, begins, ends, segments);
  return segments;
}

}  // namespace culprit::cluster
