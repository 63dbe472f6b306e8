// SPDX-License-Identifier: Apache-2.0
#include "analyze/inbox.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include "stackmine/signature_store.h"

namespace culprit::analyze {
namespace {

using stackmine::Signature;

constexpr int64_t kSecond = 1'000'000'000;

// Of the slow instances of the scenario it costs most in, those that have it.
void CountSlow(const Analysis& analysis, const stackmine::Cluster& cluster, InboxItem& item) {
  const stackmine::Evidence& evidence = analysis.evidence;
  const stackmine::Cover& cover = analysis.mined.cover;
  if (cluster.metrics.scenarios.empty()) return;
  const uint32_t scenario = cluster.metrics.scenarios.front().first;
  item.scenario = evidence.scenarios[scenario];
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    if (evidence.instances[i].scenario != scenario) continue;
    if (analysis.speeds.by_instance[i] != Speed::kSlow) continue;
    ++item.all_slow;
    for (uint64_t r = evidence.rows_begin(i); r < evidence.instances[i].rows_end; ++r) {
      if (!cover.Has(cover.own[evidence.rows[r].node], cluster.label)) continue;
      ++item.slow_instances;
      break;
    }
  }
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

void NoteTraces(const Analysis& analysis, const stackmine::Cluster& cluster,
                const std::map<std::string, const corpus::TraceRow*>& rows, InboxItem& item) {
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
  std::map<std::string, const corpus::TraceRow*> rows;
  for (const corpus::TraceRow& row : traces) rows[row.name] = &row;
  std::vector<Signature> names = analysis.signatures;
  std::vector<InboxItem> items;
  for (Finding& finding : MakeFindings(analysis, most)) {
    const stackmine::Cluster& cluster = analysis.mined.clusters[finding.cluster];
    InboxItem item;
    if (const Signature* known = analysis.SignatureOf(finding.cluster)) {
      item.signature = *known;
    } else {
      item.signature = SignatureOf(analysis.evidence, cluster);
      item.signature.source = analysis.path;
      item.signature.name =
          stackmine::FreeName(names, std::string(analysis.evidence.stacks.Function(cluster.key)));
      item.named_now = true;
      names.push_back(item.signature);
    }
    item.standing = StandingOf(item.signature);
    item.time_ns = cluster.metrics.time_ns;
    item.instances = cluster.metrics.instances;
    CountSlow(analysis, cluster, item);
    NoteTraces(analysis, cluster, rows, item);
    if (item.named_now) item.signature.added = item.first_day;
    item.finding = std::move(finding);
    items.push_back(std::move(item));
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const InboxItem& a, const InboxItem& b) { return a.standing < b.standing; });
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
