// SPDX-License-Identifier: Apache-2.0
#include "cli/top_text.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

std::string Percent(double share) {
  return FormatShare(static_cast<int64_t>(share * 1e6), 1'000'000);
}

std::string Head(const TopPage& page, bool color) {
  const TopTable& table = page.table;
  std::string text = report::Heading(
      "culprit top: " + page.target + ", last " + FormatDuration(table.dur_ns) + ", by " +
          std::string(Name(page.options.by)) + (page.paused ? " (paused)" : ""),
      color);
  text += "waiting " + FormatDuration(table.wait_ns);
  if (!page.options.idle) text += " (and idle " + FormatDuration(table.idle_ns) + ")";
  text += ", running " + FormatDuration(table.cpu_ns) + ", ready " +
          FormatDuration(table.ready_ns) + ", of " + std::to_string(table.threads) + " threads\n";
  const record::LiveCost& cost = page.cost;
  std::string line = "recording by " + std::string(record::Name(page.tier));
  if (page.tier == record::Tier::kBpf) line += " costs " + Percent(cost.share);
  line += ", looking " + Percent(cost.look_ns / 1e9) + " of a CPU";
  if (cost.lost > 0) line += "; " + FormatCount(cost.lost) + " records lost, their time is in sums";
  text += report::Note(line, color);
  if (!cost.level.empty()) text += report::Note("left out, " + cost.level, color);
  if (!record::Blindness(page.tier).empty()) {
    text += report::Note("not seen: " + std::string(record::Blindness(page.tier)), color);
  }
  if (table.left_out_ns > 0) {
    text += report::Note("of the waiting " + FormatDuration(table.left_out_ns) +
                             " is known only as sums, under " + "[waits left out]",
                         color);
  }
  if (page.keys) {
    text += report::Note("q quit   b by   s sort: " + std::string(Name(page.options.sort)) +
                             "   w show: " + std::string(Name(page.options.show)) + "   p pause",
                         color);
  }
  return text + "\n";
}

// Who waits for whom.
std::string Whom(const TopRow& row) {
  if (row.wait_class.empty()) return "";
  return row.waker.empty() ? row.wait_class : row.wait_class + " by " + row.waker;
}

TopRow RestOf(const TopTable& table, size_t from) {
  TopRow rest;
  rest.what = "(" + std::to_string(table.rows.size() - from) + " more)";
  for (size_t i = from; i < table.rows.size(); ++i) {
    rest.wait_ns += table.rows[i].wait_ns;
    rest.cpu_ns += table.rows[i].cpu_ns;
    rest.ready_ns += table.rows[i].ready_ns;
    rest.waits += table.rows[i].waits;
    rest.longest_ns = std::max(rest.longest_ns, table.rows[i].longest_ns);
  }
  return rest;
}

void AddRow(const TopRow& row, report::Table& table) {
  const auto time = [](int64_t dur_ns) {
    return dur_ns == 0 ? std::string("-") : FormatDuration(dur_ns);
  };
  table.Row({time(row.wait_ns), row.waits == 0 ? "-" : FormatCount(row.waits), time(row.longest_ns),
             time(row.cpu_ns), time(row.ready_ns), row.what, Whom(row)});
}

}  // namespace

std::string TopText(const TopPage& page, size_t width, bool color) {
  using Align = report::Table::Align;
  report::Table table;
  table.Column("waiting", Align::kRight)
      .Column("waits", Align::kRight)
      .Column("longest", Align::kRight)
      .Column("running", Align::kRight)
      .Column("ready", Align::kRight)
      .Column(Name(page.options.by), Align::kLeft, true)
      .Column("for");
  const size_t shown = std::min(page.rows, page.table.rows.size());
  for (size_t i = 0; i < shown; ++i) AddRow(page.table.rows[i], table);
  if (shown < page.table.rows.size()) AddRow(RestOf(page.table, shown), table);
  return Head(page, color) + table.ToText(width, color);
}

std::string TopJson(const TopPage& page) {
  const TopTable& table = page.table;
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject()
      .Field("target", page.target)
      .Field("tier", record::Name(page.tier))
      .Field("by", Name(page.options.by))
      .Field("dur_ns", table.dur_ns)
      .Field("wait_ns", table.wait_ns)
      .Field("idle_ns", table.idle_ns)
      .Field("cpu_ns", table.cpu_ns)
      .Field("ready_ns", table.ready_ns)
      .Field("left_out_ns", table.left_out_ns)
      .Field("threads", table.threads)
      .Field("overhead", page.cost.share)
      .Field("look_cpu", page.cost.look_ns / 1e9)
      .Field("level", page.cost.level)
      .Field("lost", page.cost.lost)
      .Key("rows")
      .BeginArray();
  const size_t shown = std::min(page.rows, table.rows.size());
  std::vector<TopRow> rows(table.rows.begin(), table.rows.begin() + static_cast<ptrdiff_t>(shown));
  if (shown < table.rows.size()) rows.push_back(RestOf(table, shown));
  for (const TopRow& row : rows) {
    json.BeginObject()
        .Field("what", row.what)
        .Field("wait_ns", row.wait_ns)
        .Field("waits", row.waits)
        .Field("longest_ns", row.longest_ns)
        .Field("cpu_ns", row.cpu_ns)
        .Field("ready_ns", row.ready_ns)
        .Field("class", row.wait_class)
        .Field("waker", row.waker)
        .EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
