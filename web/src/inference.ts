// SPDX-License-Identifier: Apache-2.0
//
// The functions that system calls alone point at (PerfScope), trace by trace.

import { part } from "./data";
import { h, type Shown } from "./dom";
import { count } from "./format";
import type { InferenceView } from "./model";

type Row = InferenceView["traces"][number];

function functions(row: Row): Node {
  if (row.functions.length === 0) {
    return h("p", {}, "No function is blamed: the system calls are as many as they should be.");
  }
  const head = h(
    "tr",
    {},
    ...["#", "function", "score", "made itself", "calls", "abnormal units"].map((title) =>
      h("th", { scope: "col" }, title),
    ),
  );
  const body = row.functions.map((f, i) =>
    h(
      "tr",
      {},
      h("td", { class: "number" }, i + 1),
      h(
        "td",
        {},
        h("code", {}, f.function),
        f.co_owners.length > 0 &&
          h("span", { class: "quiet" }, ` cannot be told from ${f.co_owners.join(", ")}`),
      ),
      h("td", { class: "number" }, count(Math.round(f.score))),
      h("td", { class: "number" }, count(Math.round(f.own))),
      h("td", {}, f.symbols.join(", ")),
      h("td", { class: "number" }, count(f.unit_count)),
    ),
  );
  return h("table", { class: "plain" }, h("thead", {}, head), h("tbody", {}, ...body));
}

function trace(row: Row): Node {
  const against = row.against
    ? `against ${row.against.join(", ")}`
    : "against the profile's own totals";
  const excess = row.excess_calls
    .slice(0, 5)
    .map((x) => `${x.symbol}: ${count(x.calls)} for ${count(Math.round(x.expected))} expected`);
  return h(
    "section",
    {},
    h("h2", {}, row.path),
    h(
      "p",
      { class: "quiet" },
      `${count(row.syscalls)} system calls ${against}; ${count(row.named)} of ${count(row.profiled)} profiled functions named`,
      row.null_rows !== null && `; the normal side against itself names ${row.null_rows}`,
    ),
    functions(row),
    excess.length > 0 && h("p", {}, `Too many: ${excess.join("; ")}`),
    ...[...row.warnings, ...row.notes].map((line) => h("p", { class: "quiet" }, line)),
  );
}

export async function inferenceView(): Promise<Shown> {
  const { traces } = await part<InferenceView>("inference");
  return [
    h("h1", {}, "Inference from system calls"),
    traces.length === 0 && h("p", {}, "No trace has system calls of the profiled program."),
    ...traces.map(trace),
  ];
}
