// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <cmath>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/infer_live.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "trace/error_table.h"

namespace culprit::cli {
namespace {

using episode::StreamRow;
using report::PlainText;
using report::Table;

constexpr auto kToTheRight = Table::Align::kRight;
constexpr size_t kTimeRows = 3;
constexpr size_t kKindsShown = 5;
constexpr size_t kOthersShown = 3;

std::string ClockText(int64_t wall_ns) {
  const time_t seconds = wall_ns / 1'000'000'000;
  tm local = {};
  localtime_r(&seconds, &local);
  char text[16] = {};
  strftime(text, sizeof(text), "%H:%M:%S", &local);
  return text;
}

std::string Rounded(double calls) {
  return FormatCount(static_cast<uint64_t>(std::llround(std::max(calls, 0.0))));
}

std::string KindsText(const std::vector<episode::Symbol>& kinds,
                      const episode::SymbolTable& symbols) {
  std::string text;
  for (size_t i = 0; i < kinds.size() && i < 2; ++i) {
    text += (text.empty() ? "" : ", ") + std::string(symbols.Name(kinds[i]));
  }
  if (kinds.size() > 2) text += ", … (" + std::to_string(kinds.size()) + ")";
  return text;
}

std::string HeadText(const LiveInference& look, bool color) {
  std::string text = ClockText(look.wall_ns) + "  " + PlainText(look.target) + ": " +
                     FormatCount(look.load.calls) + " system calls in " +
                     FormatDuration(look.window_ns) + ", against " + PlainText(look.against);
  std::string cost = "counting costs " + FormatShare(std::llround(look.cost.share * 1e6),
                                                     static_cast<int64_t>(1'000'000));
  if (look.cost.duty < 1) {
    cost += ", one of " + std::to_string(std::lround(1 / look.cost.duty)) + " moments is looked at";
  }
  if (look.cost.lost > 0) cost += ", " + FormatCount(look.cost.lost) + " calls not counted";
  return report::Heading(text, color) + report::Note(cost, color);
}

std::string ExcessText(const LiveInference& look, const episode::SymbolTable& symbols) {
  std::string text;
  const auto& rows = look.ranking.comparison.calls;
  for (size_t i = 0; i < rows.size() && i < kKindsShown; ++i) {
    const episode::SymbolLoad& load = look.load.of(rows[i].symbol);
    text += (text.empty() ? "too many: " : ", ") + std::string(symbols.Name(rows[i].symbol)) + " " +
            FormatCount(load.calls) + " for " +
            Rounded(static_cast<double>(rows[i].expected) / 1000);
    if (load.failed * 2 > load.calls) text += " (" + trace::ErrorName(load.error) + ")";
  }
  if (rows.size() > kKindsShown) text += ", … (" + std::to_string(rows.size()) + ")";
  return text.empty() ? text : text + "\n";
}

std::string CoOwnersText(const std::vector<StreamRow>& rows, size_t shown, bool color) {
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    if (rows[i].co_owners.empty()) continue;
    std::string line = "  #" + std::to_string(i + 1) + "  not told apart from: ";
    for (size_t k = 0; k < rows[i].co_owners.size() && k < kOthersShown; ++k) {
      line += (k == 0 ? "" : ", ") + PlainText(rows[i].co_owners[k]);
    }
    if (rows[i].co_owners.size() > kOthersShown) {
      line += ", … (" + std::to_string(rows[i].co_owners.size()) + ")";
    }
    text += report::Note(line, color);
  }
  return text;
}

std::string RowsText(const std::vector<StreamRow>& rows, const episode::SymbolTable& symbols,
                     bool time, size_t most, const LiveTextOptions& options) {
  Table table;
  table.Column("#", kToTheRight)
      .Column(time ? "function, by time in calls" : "function", Table::Align::kLeft, true);
  table.Column("score", kToTheRight).Column("itself", kToTheRight).Column("system calls");
  const auto amount = [&](double value) {
    return time ? FormatDuration(std::llround(value)) : Rounded(value);
  };
  const size_t shown = std::min(most, rows.size());
  for (size_t i = 0; i < shown; ++i) {
    table.Row({std::to_string(i + 1), rows[i].function, amount(rows[i].score), amount(rows[i].own),
               KindsText(rows[i].symbols, symbols)});
  }
  std::string text = table.ToText(options.width, options.color);
  text += CoOwnersText(rows, shown, options.color);
  if (rows.size() > shown) {
    text += report::Note("… and " + std::to_string(rows.size() - shown) + " more", options.color);
  }
  return text;
}

void WriteRows(std::string_view key, const std::vector<StreamRow>& rows,
               const episode::SymbolTable& symbols, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const StreamRow& row : rows) {
    json.BeginObject().Field("function", std::string_view(row.function));
    json.Field("score", row.score).Field("own", row.own).Key("co_owners").BeginArray();
    for (const std::string& name : row.co_owners) json.String(name);
    json.EndArray().Key("symbols").BeginArray();
    for (const episode::Symbol symbol : row.symbols) json.String(symbols.Name(symbol));
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string LiveInferText(const LiveInference& look, const episode::SymbolTable& symbols,
                          const LiveTextOptions& options) {
  const episode::StreamRanking& ranking = look.ranking;
  std::string text = HeadText(look, options.color);
  for (const std::string& line : ranking.warnings) text += PlainText(line) + "\n";
  text += ExcessText(look, symbols);
  if (ranking.functions.empty()) {
    text += "nobody is blamed: the system calls show no excess\n";
  } else {
    text += RowsText(ranking.functions, symbols, false, options.top, options);
  }
  if (!ranking.time.empty()) text += RowsText(ranking.time, symbols, true, kTimeRows, options);
  return text + "\n";
}

std::string LiveInferJson(const LiveInference& look, const episode::SymbolTable& symbols) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("time_ns", look.wall_ns).Field("window_ns", look.window_ns);
  json.Field("target", std::string_view(look.target));
  json.Field("against", std::string_view(look.against)).Field("syscalls", look.load.calls);
  WriteRows("functions", look.ranking.functions, symbols, json);
  json.Field("left_out", look.ranking.left_out);
  WriteRows("time", look.ranking.time, symbols, json);
  json.Key("excess_calls").BeginArray();
  for (const episode::SymbolExcess& row : look.ranking.comparison.calls) {
    const episode::SymbolLoad& load = look.load.of(row.symbol);
    json.BeginObject().Field("symbol", symbols.Name(row.symbol)).Field("calls", load.calls);
    json.Field("expected", static_cast<double>(row.expected) / 1000).Field("failed", load.failed);
    if (load.failed > 0) json.Field("error", std::string_view(trace::ErrorName(load.error)));
    json.EndObject();
  }
  json.EndArray().Field("mix_distance", look.ranking.comparison.mix_distance);
  json.Key("warnings").BeginArray();
  for (const std::string& line : look.ranking.warnings) json.String(line);
  json.EndArray().Key("cost").BeginObject().Field("share", look.cost.share);
  json.Field("duty", look.cost.duty).Field("lost", look.cost.lost).EndObject().EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
