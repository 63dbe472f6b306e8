// SPDX-License-Identifier: Apache-2.0
#include "cli/causality_text.h"

#include <fmt/core.h>

#include "base/text.h"
#include "report/block.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

using causality::SignatureTuple;

std::string SetLines(std::string_view name, const std::vector<std::string>& signatures,
                     const CausalityTextOptions& options) {
  std::string text;
  for (size_t i = 0; i < signatures.size(); ++i) {
    const std::string label = fmt::format("     {:<10}", i == 0 ? name : "");
    text += report::Styled(report::Style::kDim, label, options.color) +
            report::PlainText(signatures[i]) + "\n";
  }
  return text;
}

std::string Joined(const std::vector<std::string>& signatures) {
  std::string text;
  for (const std::string& signature : signatures) {
    text += (text.empty() ? "" : ", ") + report::PlainText(signature);
  }
  return text;
}

void WriteNames(std::string_view key, const std::vector<std::string>& names, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const std::string& name : names) json.String(name);
  json.EndArray();
}

}  // namespace

std::string ProbabilityText(double p) {
  if (p >= 0.995) return "1";
  return fmt::format("{:.2g}", p);
}

std::string FactorText(double factor) {
  if (factor >= 999.5) return fmt::format("{:.0f}×", factor);
  return factor >= 9.995 ? fmt::format("{:.1f}×", factor) : fmt::format("{:.2f}×", factor);
}

std::string TupleLines(const SignatureTuple& tuple, const CausalityTextOptions& options) {
  return SetLines("waits in", tuple.wait, options) + SetLines("ended by", tuple.unwait, options) +
         SetLines("behind it", tuple.running, options);
}

std::string TupleLine(const SignatureTuple& tuple) {
  // Who ended a wait is mostly who waited before: the lines under it tell.
  const std::string waits = Joined(tuple.wait);
  const std::string running = Joined(tuple.running);
  if (waits.empty()) return running;
  return running.empty() ? waits : waits + " ← " + running;
}

void WriteTuple(const SignatureTuple& tuple, JsonWriter& json) {
  WriteNames("wait", tuple.wait, json);
  WriteNames("unwait", tuple.unwait, json);
  WriteNames("running", tuple.running, json);
}

std::string ExampleLines(const CausalityInput& input,
                         const std::vector<causality::Example>& examples,
                         const CausalityTextOptions& options) {
  std::string text;
  for (const causality::Example& example : examples) {
    text += report::Note("     " + report::PlainText(input.ShowLine(example.trace, example.index)) +
                             " --lanes   # " + FormatDuration(example.cost_ns) + " of " +
                             FormatDuration(example.dur_ns),
                         options.color);
  }
  return text;
}

void WriteExamples(const std::vector<causality::Example>& examples, JsonWriter& json) {
  json.Key("examples").BeginArray();
  for (const causality::Example& example : examples) json.String(example.instance);
  json.EndArray().Key("example_cost_ns").BeginArray();
  for (const causality::Example& example : examples) json.Int(example.cost_ns);
  json.EndArray();
}

}  // namespace culprit::cli
