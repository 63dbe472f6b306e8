// SPDX-License-Identifier: Apache-2.0
//
// The first view: what was analysed, where its time went, the findings as
// sentences, how many traces one must open, and the scenarios.

import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { kindColor } from "./colors";
import { overview } from "./data";
import { h, link, s, type Shown } from "./dom";
import { count, duration, label, share } from "./format";
import type { Curve, Overview, TimeShare } from "./model";
import { to } from "./route";
import { sparkline } from "./sparkline";
import { VirtualTable } from "./table";

export async function overviewView(): Promise<Shown> {
  const data = await overview();
  if (data.corpus.instances === 0) return [heading(data), nothing(data)];
  return [
    heading(data),
    h(
      "section",
      { "aria-labelledby": "where" },
      h("h2", { id: "where" }, "Where the time went"),
      breakdown("the instances' own threads", data.time.own, data.time.total_ns),
      breakdown(
        "with every wait followed to what was behind it",
        data.time.behind,
        data.time.total_ns,
      ),
    ),
    findings(data),
    coverage(data),
    scenarios(data),
    skipped(data),
  ];
}

function heading(data: Overview): Node {
  const c = data.corpus;
  return h(
    "section",
    {},
    h("h1", {}, c.name),
    h(
      "p",
      { class: "facts", id: "facts" },
      `${count(c.traces)} ${c.traces === 1 ? "trace" : "traces"}, ${count(c.instances)} instances of ${count(data.scenarios.length)} scenarios, ` +
        `${count(c.events)} events; ${duration(data.time.total_ns)} of instances' time, ${count(data.clusters)} behaviours`,
    ),
  );
}

function nothing(data: Overview): Node {
  return h(
    "section",
    {},
    h("p", {}, "There are no instances here, so there is no delay to explain."),
    h(
      "p",
      {},
      "Instances come from marks in a trace, from rules at import (culprit import --scenario), " +
        "or are found between the idle waits of a thread, for which a trace needs context switches.",
    ),
    skipped(data),
  );
}

function breakdown(title: string, shares: TimeShare[], total: number): Node {
  const bar = h("div", {
    class: "stacked",
    role: "img",
    "aria-label": `${title}: ${shares.map((x) => `${label(x.key)} ${share(x.ns, total)}`).join(", ")}`,
  });
  const legend = h("ul", { class: "legend" });
  for (const x of shares) {
    const piece = h("span", { title: `${label(x.key)}: ${duration(x.ns)}, ${share(x.ns, total)}` });
    piece.style.flexGrow = String(total === 0 ? 0 : x.ns / total);
    piece.style.background = kindColor(x.key);
    bar.append(piece);
    const dot = h("i", {});
    dot.style.background = kindColor(x.key);
    legend.append(
      h("li", {}, dot, `${label(x.key)} `, h("b", {}, share(x.ns, total)), ` ${duration(x.ns)}`),
    );
  }
  return h("figure", {}, h("figcaption", {}, title), bar, legend);
}

function findings(data: Overview): Node {
  const list = h("ol", { class: "findings" });
  for (const f of data.findings) {
    list.append(
      h(
        "li",
        {},
        h(
          "p",
          {},
          link(to("cluster", f.cluster), f.sentence),
          " ",
          h("span", { class: `status ${f.status}` }, f.status),
        ),
        f.command && h("code", {}, f.command),
      ),
    );
  }
  return h(
    "section",
    { "aria-labelledby": "findings" },
    h("h2", { id: "findings" }, "Findings"),
    data.findings.length > 0 ? list : h("p", {}, "No behaviour costs enough to be named."),
    h("p", {}, link(to("clusters"), `all ${count(data.clusters)} behaviours`)),
  );
}

const kDashes = ["", "6 3", "2 3", "8 3 2 3"];

function coverage(data: Overview): Node | null {
  const curves = data.coverage.curves.filter((c) => c.points.length > 1);
  if (curves.length === 0) return null;
  const width = 640;
  const height = 240;
  const traces = Math.max(...curves.map((c) => c.points[c.points.length - 1]![0]));
  const x = scaleLinear([0, traces], [46, width - 150]);
  const y = scaleLinear([0, data.time.total_ns], [height - 30, 10]);
  const path = line<[number, number]>(
    (p) => x(p[0]),
    (p) => y(p[1]),
  );
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "chart",
    "aria-label": "share of the time explained by the number of traces opened",
  });
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    const at = y(tick * data.time.total_ns);
    svg.append(
      s("line", { x1: 46, x2: width - 150, y1: at, y2: at, class: "grid" }),
      s("text", { x: 40, y: at + 4, "text-anchor": "end" }, `${tick * 100} %`),
    );
  }
  for (const tick of x.ticks(Math.min(6, traces)).filter(Number.isInteger)) {
    svg.append(s("text", { x: x(tick), y: height - 10, "text-anchor": "middle" }, String(tick)));
  }
  let below = 0;
  curves.forEach((curve: Curve, i) => {
    const last = curve.points[curve.points.length - 1]!;
    svg.append(
      s("path", {
        d: path([[0, 0], ...curve.points]) ?? "",
        class: `curve curve${i}`,
        "stroke-dasharray": kDashes[i] ?? "",
      }),
    );
    // Curves end at the same height; their names stand below each other.
    svg.append(
      s(
        "text",
        { x: width - 142, y: y(last[1]) + 4 + 16 * below++, class: `curve${i}` },
        curve.name,
      ),
    );
  });
  return h(
    "section",
    { "aria-labelledby": "coverage" },
    h("h2", { id: "coverage" }, "How many traces to open"),
    h(
      "p",
      { class: "quiet" },
      "Time explained by the behaviours seen after opening so many traces, by the order in which they are opened.",
    ),
    svg,
  );
}

function scenarios(data: Overview): Node {
  const rows = data.scenarios;
  const named = new Set(data.parts);
  const table = new VirtualTable({
    rows: rows.length,
    label: "scenarios",
    sort: "-total",
    height: "22rem",
    filter: (row, words) => words.every((w) => rows[row]!.name.toLowerCase().includes(w)),
    open: (row) => {
      if (named.has(`chains-${row}`)) location.hash = to("chains", String(row));
    },
    columns: [
      { key: "name", title: "scenario", width: "minmax(10rem, 3fr)", text: (r) => rows[r]!.name },
      {
        key: "instances",
        title: "instances",
        width: "6.5rem",
        number: true,
        text: (r) => count(rows[r]!.instances),
        value: (r) => rows[r]!.instances,
      },
      {
        key: "total",
        title: "time",
        width: "7rem",
        number: true,
        text: (r) => duration(rows[r]!.total_ns),
        value: (r) => rows[r]!.total_ns,
        bar: (r) => rows[r]!.total_ns / data.time.total_ns,
      },
      {
        key: "p50",
        title: "p50",
        width: "6rem",
        number: true,
        text: (r) => duration(rows[r]!.p50_ns),
        value: (r) => rows[r]!.p50_ns,
      },
      {
        key: "p90",
        title: "p90",
        width: "6rem",
        number: true,
        text: (r) => duration(rows[r]!.p90_ns),
        value: (r) => rows[r]!.p90_ns,
      },
      {
        key: "max",
        title: "slowest",
        width: "6rem",
        number: true,
        text: (r) => duration(rows[r]!.max_ns),
        value: (r) => rows[r]!.max_ns,
      },
      {
        key: "spread",
        title: "durations",
        width: "10rem",
        text: () => "",
        cell: (r) => sparkline(rows[r]!.histogram),
      },
    ],
  });
  return h(
    "section",
    { "aria-labelledby": "scenarios" },
    h("h2", { id: "scenarios" }, "Scenarios"),
    table.element,
  );
}

function skipped(data: Overview): Node | null {
  const { skipped: bad, unreadable } = data.corpus;
  if (bad.length === 0 && unreadable.length === 0) return null;
  return h(
    "section",
    { "aria-labelledby": "skipped" },
    h("h2", { id: "skipped" }, "Damaged or skipped"),
    h(
      "ul",
      {},
      ...bad.map((x) => h("li", {}, `${count(x.count)} × ${x.what}`)),
      ...unreadable.map((x) => h("li", {}, `not read: ${x}`)),
    ),
  );
}
