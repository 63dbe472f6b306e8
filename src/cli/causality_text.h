// SPDX-License-Identifier: Apache-2.0
//
// How `contrast` and `diff` print what they share: a tuple of signatures as lines
// or as one line, a probability, a factor. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "causality/contrast.h"
#include "causality/tuple.h"
#include "cli/causality_input.h"

namespace culprit::cli {

// "0.0005", "0.012", "0.34", "1".
std::string ProbabilityText(double p);
// "12.3×", "1.04×".
std::string FactorText(double factor);

// Three groups of lines, what waits, what ended it, what ran or served meanwhile:
//      waits in    fv.sys!QueryFileTable
//                  fs.sys!AcquireMDU
//      ended by    ...
//      behind it   ...
std::string TupleLines(const causality::SignatureTuple& tuple, const CausalityTextOptions& options);
// The same in one line, for a table: "fs.sys!A, fs.sys!B ← se.sys!C".
std::string TupleLine(const causality::SignatureTuple& tuple);
// "wait", "unwait" and "running".
void WriteTuple(const causality::SignatureTuple& tuple, JsonWriter& json);

// The command that draws each example.
std::string ExampleLines(const CausalityInput& input,
                         const std::vector<causality::Example>& examples,
                         const CausalityTextOptions& options);
// "examples", as TRACE:INDEX, and "example_cost_ns".
void WriteExamples(const std::vector<causality::Example>& examples, JsonWriter& json);

}  // namespace culprit::cli
