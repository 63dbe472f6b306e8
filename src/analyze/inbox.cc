// SPDX-License-Identifier: Apache-2.0
#include "analyze/inbox.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <optional>

#include "base/text.h"
#include "corpus/slow_unit_labels.h"
#include "stackmine/reduce.h"
#include "stackmine/signature_store.h"
#include "stackmine/telling_frames.h"

namespace culprit::analyze {
namespace {

using stackmine::Signature;

constexpr int64_t kSecond = 1'000'000'000;

using Rows = std::map<std::string, const corpus::TraceRow*>;

// Which instances were too slow: as the guards said, where they did.
struct SlowInstances {
  std::vector<bool> is_slow;  // by instance
  bool by_guards = false;     // at least one trace says so

  SlowInstances(const Analysis& analysis, const Rows& rows)
      : is_slow(analysis.evidence.instances.size()) {
    const stackmine::Evidence& evidence = analysis.evidence;
    std::vector<std::optional<Thresholds>> of_trace;
    for (const stackmine::TraceFacts& trace : evidence.traces) {
      const auto row = rows.find(trace.name);
      of_trace.push_back(row == rows.end() ? std::nullopt : ThresholdsOf(*row->second));
      by_guards = by_guards || of_trace.back();
    }
    for (size_t i = 0; i < is_slow.size(); ++i) {
      const stackmine::InstanceFacts& instance = evidence.instances[i];
      if (const std::optional<Thresholds>& thresholds = of_trace[instance.trace]) {
        const auto bound = thresholds->find(evidence.scenarios[instance.scenario]);
        is_slow[i] = bound != thresholds->end() && instance.dur_ns >= bound->second;
      } else {
        is_slow[i] = analysis.speeds.by_instance[i] == Speed::kSlow;
      }
    }
  }

 private:
  using Thresholds = std::map<std::string, int64_t, std::less<>>;

  // Nothing: nobody says for this trace.
  static std::optional<Thresholds> ThresholdsOf(const corpus::TraceRow& row) {
    const auto label = row.labels.find(corpus::kThresholdsLabel);
    if (label == row.labels.end()) return std::nullopt;
    Thresholds thresholds;
    std::string_view text = label->second;
    while (!text.empty()) {
      const std::string_view part = text.substr(0, text.find(';'));
      text.remove_prefix(std::min(text.size(), part.size() + 1));
      const size_t equals = part.rfind('=');
      if (equals == std::string_view::npos) continue;
      const std::optional<uint64_t> ns = ParseUnsigned(part.substr(equals + 1));
      if (!ns || *ns > INT64_MAX) continue;
      thresholds.emplace(part.substr(0, equals), static_cast<int64_t>(*ns));
    }
    return thresholds;
  }
};

// The frames of a stack without where every program begins.
std::vector<std::string> ChainOf(const stackmine::StackTable& stacks, stackmine::StackIndex stack) {
  std::vector<stackmine::FrameSymbol> frames;
  stacks.Frames(stack, frames);
  const auto begin = std::find_if(frames.begin(), frames.end(), [&](stackmine::FrameSymbol frame) {
    return stackmine::IsTelling(stacks, frame);
  });
  std::vector<std::string> chain;
  for (auto it = begin; it != frames.end(); ++it) chain.emplace_back(stacks.FrameName(*it));
  return chain;
}

// Its time in slow instances, with the stack that has most of it; of those of the
// scenario it costs most in, how many have it.
void CountSlow(const Analysis& analysis, const SlowInstances& slow,
               const stackmine::Cluster& cluster, InboxItem& item) {
  const stackmine::Evidence& evidence = analysis.evidence;
  const stackmine::Cover& cover = analysis.mined.cover;
  std::map<uint32_t, std::pair<int64_t, uint64_t>> scenarios;  // time, instances
  std::map<uint32_t, uint64_t> all;
  std::map<stackmine::StackIndex, int64_t> stacks;
  RowCursor rows(evidence.rows);
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    if (!slow.is_slow[i]) continue;
    const uint32_t scenario = evidence.instances[i].scenario;
    ++all[scenario];
    int64_t time_ns = 0;
    bool has = false;
    const uint64_t end = evidence.instances[i].rows_end;
    for (const stackmine::PathRow& row : rows.Read(evidence.rows_begin(i), end)) {
      if (!cover.Has(cover.own[row.node], cluster.label)) continue;
      has = true;
      // Below another wait of the same behaviour it is that one's time already.
      if (cover.Has(cover.above[row.node], cluster.label)) continue;
      time_ns += row.cost_ns;
      stacks[evidence.forest.nodes()[row.node].stack] += row.cost_ns;
    }
    auto& [sum_ns, instances] = scenarios[scenario];
    sum_ns += time_ns;
    instances += has ? 1 : 0;
    item.slow_ns += time_ns;
  }
  const auto costliest =
      std::max_element(stacks.begin(), stacks.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (costliest != stacks.end()) item.chain = ChainOf(evidence.stacks, costliest->first);
  std::optional<uint32_t> main;
  for (const auto& [scenario, cost] : scenarios) {
    if (cost.second > 0 && (!main || cost.first > scenarios[*main].first)) main = scenario;
  }
  if (!main && cluster.metrics.scenarios.empty()) return;
  const uint32_t scenario = main ? *main : cluster.metrics.scenarios.front().first;
  item.scenario = evidence.scenarios[scenario];
  item.slow_instances = main ? scenarios[*main].second : 0;
  item.all_slow = all[scenario];
}

bool IsCode(std::string_view frame) {
  return !frame.empty() && frame.front() != '[' && !stackmine::IsPseudoFrame(frame);
}

// "[waits left out]", "[thread]!worker": no function that anybody could change. Nor
// is the time that our own guards took, or held a thread to look at it.
bool NamesNoCode(const stackmine::Evidence& evidence, const stackmine::Cluster& cluster) {
  const auto name = [&](stackmine::FrameSymbol frame) { return evidence.stacks.FrameName(frame); };
  const auto is_ours = [&](stackmine::FrameSymbol frame) {
    return evidence.stacks.Function(frame).starts_with("ptrace_stop") ||
           name(frame).starts_with("libculprit_guard.so!");
  };
  const auto is_code = [&](stackmine::FrameSymbol frame) { return IsCode(name(frame)); };
  const std::vector<stackmine::FrameSymbol>& common = cluster.common;
  if (is_ours(cluster.site) || std::any_of(common.begin(), common.end(), is_ours)) return true;
  return !is_code(cluster.key) && !is_code(cluster.site) &&
         std::none_of(common.begin(), common.end(), is_code);
}

// The function nearest to where the time goes; the rarest where that is no code.
std::string_view TellingName(const stackmine::Evidence& evidence,
                             const stackmine::Cluster& cluster) {
  const bool site = IsCode(evidence.stacks.FrameName(cluster.site)) &&
                    !evidence.stacks.Function(cluster.site).starts_with("+0x");
  return evidence.stacks.Function(site ? cluster.site : cluster.key);
}

Standing StandingOf(const Signature& signature) {
  switch (signature.status) {
    case stackmine::SignatureStatus::kFixed:
      return Standing::kRegressed;
    case stackmine::SignatureStatus::kNew:
      return Standing::kNew;
    default:
      return Standing::kKnown;
  }
}

void NoteTraces(const Analysis& analysis, const stackmine::Cluster& cluster, const Rows& rows,
                InboxItem& item) {
  for (const auto& [trace, time_ns] : cluster.metrics.by_trace) {
    if (time_ns <= 0) continue;
    const auto row = rows.find(analysis.evidence.traces[trace].name);
    if (row == rows.end()) continue;
    stackmine::NoteSighting(item.signature, row->second->app, row->second->app_version,
                            DayOf(row->second->added_ns));
  }
  for (const stackmine::Sighting& seen : item.signature.seen) {
    if (item.first_day.empty() || seen.first < item.first_day) item.first_day = seen.first;
    item.last_day = std::max(item.last_day, seen.last);
  }
}

}  // namespace

std::string_view Name(Standing standing) {
  constexpr std::array<std::string_view, 3> kNames = {"regressed", "new", "known"};
  return kNames[static_cast<size_t>(standing)];
}

std::string DayOf(int64_t unix_ns) {
  if (unix_ns <= 0) return {};
  const std::time_t seconds = unix_ns / kSecond;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  std::array<char, 16> text = {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &utc)};
}

std::vector<InboxItem> MakeInbox(const Analysis& analysis,
                                 const std::vector<corpus::TraceRow>& traces, size_t most) {
  Rows rows;
  for (const corpus::TraceRow& row : traces) rows[row.name] = &row;
  const SlowInstances slow(analysis, rows);
  std::vector<Signature> names = analysis.signatures;
  std::vector<InboxItem> items;
  // What costs most in all may cost little in slow instances.
  constexpr size_t kLooksFurther = 5;
  for (Finding& finding : MakeFindings(analysis, kLooksFurther * most)) {
    const stackmine::Cluster& cluster = analysis.mined.clusters[finding.cluster];
    InboxItem item;
    if (const Signature* known = analysis.SignatureOf(finding.cluster)) {
      item.signature = *known;
    } else {
      item.signature = SignatureOf(analysis.evidence, cluster);
      item.signature.source = analysis.path;
      item.signature.name =
          stackmine::FreeName(names, std::string(TellingName(analysis.evidence, cluster)));
      item.named_now = true;
      names.push_back(item.signature);
    }
    item.standing = StandingOf(item.signature);
    item.time_ns = cluster.metrics.time_ns;
    item.instances = cluster.metrics.instances;
    item.unrecorded = NamesNoCode(analysis.evidence, cluster);
    CountSlow(analysis, slow, cluster, item);
    NoteTraces(analysis, cluster, rows, item);
    if (item.named_now) item.signature.added = item.first_day;
    item.finding = std::move(finding);
    items.push_back(std::move(item));
  }
  std::stable_sort(items.begin(), items.end(), [&](const InboxItem& a, const InboxItem& b) {
    if (a.standing != b.standing) return a.standing < b.standing;
    if (a.unrecorded != b.unrecorded) return b.unrecorded;
    return slow.by_guards && a.slow_ns > b.slow_ns;
  });
  if (items.size() > most) items.resize(most);
  return items;
}

Status RememberInbox(const std::vector<InboxItem>& items, const std::string& store) {
  return stackmine::ChangeStore(store, [&](std::vector<Signature>& all) -> Status {
    for (const InboxItem& item : items) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const Signature& s) {
        return s.name == item.signature.name;
      });
      if (same != all.end()) {
        for (const stackmine::Sighting& seen : item.signature.seen) {
          stackmine::NoteSighting(*same, seen.app, seen.version, seen.first);
          stackmine::NoteSighting(*same, seen.app, seen.version, seen.last);
        }
      } else {
        all.push_back(item.signature);
      }
    }
    return {};
  });
}

}  // namespace culprit::analyze
