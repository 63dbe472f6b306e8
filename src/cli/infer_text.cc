// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/infer_facts.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "trace/error_table.h"

namespace culprit::cli {
namespace {

using episode::InferredFunction;
using report::Fact;
using report::PlainText;
using report::Table;

constexpr auto kRight = Table::Align::kRight;
constexpr size_t kSymbolsShown = 8;
constexpr size_t kEpisodesShown = 3;
constexpr size_t kCoOwnersShown = 4;

std::string Calls(double calls) { return FormatCount(static_cast<uint64_t>(std::llround(calls))); }

std::string Plural(uint64_t count, std::string_view one) {
  return FormatCount(count) + " " + std::string(one) + (count == 1 ? "" : "s");
}

std::string SymbolList(const InferFacts& facts, const std::vector<episode::Symbol>& symbols) {
  std::string text;
  for (size_t i = 0; i < symbols.size() && i < 2; ++i) {
    text += (text.empty() ? "" : ", ") + facts.SymbolText(symbols[i]);
  }
  if (symbols.size() > 2) text += ", … (" + std::to_string(symbols.size()) + ")";
  return text;
}

std::string Head(const InferFacts& facts, bool color) {
  const episode::Inference& inference = facts.inference;
  std::vector<Fact> rows;
  rows.emplace_back("system calls", FormatCount(facts.log.syscalls) + " of " +
                                        Plural(facts.log.threads.size(), "thread") + " in " +
                                        FormatDuration(facts.log.end_ns - facts.log.begin_ns));
  rows.emplace_back("profile", PlainText(facts.profile_path) + ": " +
                                   Plural(inference.profiled, "function") + ", " +
                                   FormatCount(facts.profile.syscalls) + " system calls");
  if (facts.against.empty()) {
    rows.emplace_back("against", "the profile's totals");
  }
  for (size_t i = 0; i < facts.against.size(); ++i) {
    const bool nearest = facts.against.size() > 1 && i == inference.comparison.nearest;
    rows.emplace_back(i == 0 ? "against" : "",
                      PlainText(facts.against[i]) + (nearest ? " (nearest)" : ""));
  }
  const uint64_t instances = inference.units.instances;
  rows.emplace_back(
      "units", FormatCount(inference.units.units.size()) + " (cut at " +
                   (instances > 0 ? Plural(instances, "instance") + " and " : "") + "gaps above " +
                   FormatDuration(static_cast<int64_t>(inference.units.bound_ns)) + "), " +
                   FormatCount(inference.anomalies.abnormal) + " unlike the others");
  return report::Heading(PlainText(facts.path), color) + report::Facts(rows, color);
}

std::string ExcessTable(const InferFacts& facts, const InferTextOptions& options) {
  const auto& rows = facts.inference.comparison.calls;
  if (rows.empty()) return {};
  Table table;
  table.Column("system call").Column("calls", kRight).Column("expected", kRight);
  table.Column("too many", kRight).Column("fails with", Table::Align::kLeft, true);
  for (size_t i = 0; i < rows.size() && i < kSymbolsShown; ++i) {
    const episode::SymbolLoad& load = facts.inference.load.of(rows[i].symbol);
    std::string fails;
    if (load.failed > 0) {
      fails = FormatShare(static_cast<int64_t>(load.failed), static_cast<int64_t>(load.calls)) +
              ", mostly " + trace::ErrorName(load.error);
    }
    table.Row({facts.SymbolText(rows[i].symbol), FormatCount(load.calls),
               Calls(static_cast<double>(rows[i].expected) / 1000),
               Calls(static_cast<double>(rows[i].excess) / 1000), fails});
  }
  std::string text = "\n" + report::Heading("What there is too much of", options.color) +
                     table.ToText(options.width, options.color);
  if (rows.size() > kSymbolsShown) {
    text += report::Note("… and " + std::to_string(rows.size() - kSymbolsShown) + " more",
                         options.color);
  }
  return text;
}

std::string ActiveText(const InferFacts& facts, const InferredFunction& function) {
  if (!function.first_ns) return {};
  return "active from " + FormatDuration(*function.first_ns - facts.log.begin_ns) + " to " +
         FormatDuration(*function.last_ns - facts.log.begin_ns) + " in " +
         Plural(function.unit_count, "unit") + ", number " + std::to_string(function.order) +
         " to begin";
}

std::string Details(const InferFacts& facts, const InferredFunction& function, bool color) {
  std::string text;
  if (!function.co_owners.empty()) {
    std::string line = "      not told apart from: ";
    for (size_t i = 0; i < function.co_owners.size() && i < kCoOwnersShown; ++i) {
      line += (i == 0 ? "" : ", ") + PlainText(function.co_owners[i]);
    }
    if (function.co_owners.size() > kCoOwnersShown) {
      line += ", … (" + std::to_string(function.co_owners.size()) + ")";
    }
    text += report::Note(line, color);
  }
  for (size_t i = 0; i < function.episodes.size() && i < kEpisodesShown; ++i) {
    const episode::EpisodeMatch& match = function.episodes[i];
    if (match.episode.length < 2) continue;
    std::string line = "      " + facts.EpisodeText(match.episode) + ": " +
                       FormatCount(match.count) + " times in unusual units";
    if (match.profile_count > 0) {
      line += ", " + FormatCount(match.profile_count) + " in the profile";
    }
    text += report::Note(line, color);
  }
  return text;
}

std::string FunctionTable(const InferFacts& facts, const InferTextOptions& options) {
  const episode::Inference& inference = facts.inference;
  const bool paper = inference.method == episode::Method::kPaper;
  if (inference.functions.empty()) return {};
  Table table;
  table.Column("#", kRight).Column("function", Table::Align::kLeft, true);
  table.Column(paper ? "increase" : "score", kRight).Column(paper ? "matched" : "owned", kRight);
  if (!paper) table.Column("itself", kRight);
  if (!paper) table.Column("system calls");
  const size_t shown = std::min(options.top, inference.functions.size());
  for (size_t i = 0; i < shown; ++i) {
    const InferredFunction& function = inference.functions[i];
    std::vector<std::string> cells = {std::to_string(i + 1), function.function};
    if (paper) {
      cells.push_back(Calls(function.score * 100) + " %");
      cells.push_back(FormatCount(function.matched));
    } else {
      cells.insert(cells.end(), {Calls(function.score), Calls(function.raw_score),
                                 Calls(function.own), SymbolList(facts, function.symbols)});
    }
    table.Row(std::move(cells));
  }
  std::string text = "\n" +
                     report::Heading(paper ? "Functions whose episodes the unusual units have"
                                           : "Functions that make such calls",
                                     options.color) +
                     table.ToText(options.width, options.color);
  for (size_t i = 0; i < shown; ++i) {
    const InferredFunction& function = inference.functions[i];
    text += report::Note("  #" + std::to_string(i + 1) + "  " + ActiveText(facts, function),
                         options.color);
    text += Details(facts, function, options.color);
  }
  if (inference.functions.size() > shown) {
    text += report::Note("… and " + std::to_string(inference.functions.size() - shown) + " more",
                         options.color);
  }
  return text;
}

std::string ShortTable(const InferFacts& facts, const std::vector<InferredFunction>& functions,
                       std::string_view title, bool time, const InferTextOptions& options) {
  if (functions.empty()) return {};
  Table table;
  table.Column("#", kRight).Column("function", Table::Align::kLeft, true);
  table.Column("score", kRight).Column("owned", kRight).Column("system calls");
  const auto amount = [&](double value) {
    return time ? FormatDuration(std::llround(value)) : Calls(value);
  };
  const size_t shown = std::min(options.top, functions.size());
  for (size_t i = 0; i < shown; ++i) {
    table.Row({std::to_string(i + 1), functions[i].function, amount(functions[i].score),
               amount(functions[i].raw_score), SymbolList(facts, functions[i].symbols)});
  }
  std::string text =
      "\n" + report::Heading(title, options.color) + table.ToText(options.width, options.color);
  if (functions.size() > shown) {
    text +=
        report::Note("… and " + std::to_string(functions.size() - shown) + " more", options.color);
  }
  return text;
}

std::string Trust(const InferFacts& facts, bool color) {
  const episode::Inference& inference = facts.inference;
  std::vector<Fact> rows;
  rows.emplace_back("named", FormatCount(inference.named) + " of " +
                                 Plural(inference.profiled, "profiled function") + " (" +
                                 FormatShare(static_cast<int64_t>(inference.named),
                                             static_cast<int64_t>(inference.profiled)) +
                                 ")");
  if (inference.method == episode::Method::kExcess) {
    rows.emplace_back("by chance",
                      inference.null_rows
                          ? "half of the normal side against its other half names " +
                                Plural(*inference.null_rows, "row")
                          : "not known: the normal side is too short to be held against itself");
  }
  if (inference.left_out > 0) {
    rows.emplace_back("left out", Plural(inference.left_out, "row") + " below 5 % of the first");
  }
  if (inference.sequences_capped > 0) {
    rows.emplace_back("cut short", Plural(inference.sequences_capped, "unit") +
                                       " had too many candidates for long episodes");
  }
  std::string text =
      "\n" + report::Heading("How far to trust it", color) + report::Facts(rows, color);
  for (const std::string& line : inference.notes) text += "  " + PlainText(line) + "\n";
  for (const auto& [what, row] : facts.diagnostics.rows()) {
    text += "  " + FormatCount(row.count) + " x " + PlainText(what) + "\n";
  }
  return text;
}

}  // namespace

std::string InferText(const InferFacts& facts, const InferTextOptions& options) {
  const episode::Inference& inference = facts.inference;
  std::string text = Head(facts, options.color);
  text += ExcessTable(facts, options);
  text += FunctionTable(facts, options);
  text +=
      ShortTable(facts, inference.stacks,
                 "What the stacks of this trace say: they are seen, not inferred", false, options);
  text += ShortTable(facts, inference.time,
                     "By time spent in calls, a weaker hint (waits for requests left out)", true,
                     options);
  return text + Trust(facts, options.color);
}

}  // namespace culprit::cli
