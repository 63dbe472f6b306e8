// SPDX-License-Identifier: Apache-2.0
//
// The behaviours: a table of all, and one looked at closely with what its
// patterns share and where they differ (001 figure 5).

import { kindColor, moduleColor } from "./colors";
import { overview, part } from "./data";
import { h, link, type Shown } from "./dom";
import { count, duration, share } from "./format";
import type { ClusterColumns, ClusterDetails } from "./model";
import { setParameter, to } from "./route";
import { instanceIndex } from "./lanes";
import { markControl, statusOf } from "./marks";
import { VirtualTable, type Column } from "./table";
import { isDark } from "./theme";

export async function clustersView(parameters: URLSearchParams): Promise<Shown> {
  const [data, all] = await Promise.all([part<ClusterColumns>("clusters"), overview()]);
  const total = all.time.total_ns;
  let kind = parameters.get("kind") ?? "";
  const time = (
    key: "cost_ns" | "distinct_ns" | "time_ns" | "gain_ns" | "p50_ns" | "p95_ns" | "max_ns",
    title: string,
    help: string,
    bar = false,
  ): Column => ({
    key,
    title,
    help,
    width: "6.2rem",
    number: true,
    text: (r) => duration(data[key][r]!),
    value: (r) => data[key][r]!,
    bar: bar ? (r) => data[key][r]! / total : undefined,
  });
  const number = (key: "events" | "instances" | "traces", title: string): Column => ({
    key,
    title,
    width: "5.6rem",
    number: true,
    text: (r) => count(data[key][r]!),
    value: (r) => data[key][r]!,
  });
  const choice = h(
    "select",
    {
      "aria-label": "kind of time",
      change: () => {
        kind = choice.value;
        setParameter("kind", kind);
        table.refresh();
      },
    },
    ...[
      ["", "waits and CPU"],
      ["wait", "waits"],
      ["run", "CPU"],
    ].map(([value, text]) => h("option", { value: value!, selected: value === kind }, text!)),
  );
  const table = new VirtualTable({
    rows: data.id.length,
    label: "behaviours",
    sort: "rank",
    height: "calc(100vh - 13rem)",
    controls: [choice],
    keep: (r) => kind === "" || data.kind[r] === kind,
    filter: (r, words) => {
      const text =
        `${data.id[r]} ${data.class[r]} ${data.summary[r]} ${data.signature[r]} ${statusOf(data.id[r]!, data.status[r]!)}`.toLowerCase();
      return words.every((w) => text.includes(w));
    },
    open: (r) => {
      location.hash = to("cluster", data.id[r]!);
    },
    columns: [
      {
        key: "rank",
        title: "#",
        help: "the order of culprit mine",
        width: "3.2rem",
        number: true,
        text: (r) => String(r + 1),
        value: (r) => r,
      },
      {
        key: "class",
        title: "kind",
        width: "5.4rem",
        text: (r) => data.class[r]!,
        cell: (r) => kindTag(data.class[r]!),
      },
      { key: "summary", title: "what", width: "minmax(22rem, 1fr)", text: (r) => data.summary[r]! },
      time("time_ns", "time", "of the instances' time, each nanosecond once", true),
      time("cost_ns", "cost", "lengths of its events as charged to instances"),
      time("distinct_ns", "distinct", "the same with each event counted once"),
      time("gain_ns", "adds", "time that no behaviour ranked before explains"),
      number("instances", "instances"),
      number("traces", "traces"),
      number("events", "events"),
      time("p50_ns", "p50", "lost by an affected instance, median"),
      time("p95_ns", "p95", "lost by an affected instance, 95th percentile"),
      time("max_ns", "max", "lost by the worst instance"),
      {
        key: "status",
        title: "status",
        width: "5rem",
        text: (r) => statusOf(data.id[r]!, data.status[r]!),
      },
    ],
  });
  return [h("h1", {}, "Behaviours"), table.element];
}

function kindTag(kind: string): Node {
  const tag = h("span", { class: "tag" }, kind);
  tag.style.borderColor = kindColor(kind === "cpu" ? "running" : kind);
  return tag;
}

export async function clusterView(id: string): Promise<Shown> {
  const [data, all] = await Promise.all([part<ClusterColumns>("clusters"), overview()]);
  const row = data.id.indexOf(id);
  if (row < 0) throw new Error(`there is no behaviour ${id} in this report`);
  const details = await part<ClusterDetails>(`details-${Math.floor(row / all.detail_size)}`);
  const cluster = details.clusters[row - details.first]!;
  const names = details.names;
  const drawn = (await instanceIndex()).names;
  const total = all.time.total_ns;
  const inside = data.part_of[row]!;
  const contains = data.part_of.flatMap((p, i) => (p === row ? [i] : []));
  const facts: [string, string][] = [
    [
      "time",
      `${duration(data.time_ns[row]!)}, ${share(data.time_ns[row]!, total)} of all; ${duration(data.gain_ns[row]!)} of it explained by nothing ranked before`,
    ],
    [
      "cost",
      `${duration(data.cost_ns[row]!)} as charged to instances, ${duration(data.distinct_ns[row]!)} distinct, ${count(data.events[row]!)} events`,
    ],
    [
      "affected",
      `${count(data.instances[row]!)} of ${count(all.corpus.instances)} instances, ${count(data.traces[row]!)} of ${count(all.corpus.traces)} traces`,
    ],
    [
      "an instance loses",
      `p50 ${duration(data.p50_ns[row]!)}, p95 ${duration(data.p95_ns[row]!)}, at most ${duration(data.max_ns[row]!)}`,
    ],
  ];
  const b = cluster.below;
  const behind = b.running_ns + b.ready_ns + b.hardware_ns + b.unexplained_ns;
  if (data.kind[row] === "wait" && behind > 0) {
    facts.push([
      "behind it",
      `running ${share(b.running_ns, behind)}, ready ${share(b.ready_ns, behind)}, hardware ${share(b.hardware_ns, behind)}, unexplained ${share(b.unexplained_ns, behind)}`,
    ]);
  }
  return [
    h("p", {}, link(to("clusters"), "‹ all behaviours")),
    h("h1", {}, `#${row + 1} ${data.summary[row]}`),
    h(
      "p",
      {},
      h("code", {}, id),
      " ",
      markControl(
        id,
        data.summary[row]!,
        data.status[row]!,
        data.signature[row]!,
        cluster.patterns.map((p) => p.frames.map((f) => names[f]!)),
        data.kind[row]!,
      ),
    ),
    h("dl", { class: "facts" }, ...facts.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
    inside >= 0 &&
      h(
        "p",
        {},
        "Its time is inside ",
        link(to("cluster", data.id[inside]!), `#${inside + 1} ${data.summary[inside]}`),
      ),
    contains.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `contains ${contains.length} others`),
        h(
          "ul",
          {},
          ...contains
            .slice(0, 200)
            .map((i) =>
              h(
                "li",
                {},
                link(to("cluster", data.id[i]!), `#${i + 1} ${data.summary[i]}`),
                ` ${duration(data.time_ns[i]!)}`,
              ),
            ),
        ),
      ),
    h("h2", {}, "Call sequence"),
    h(
      "p",
      { class: "quiet" },
      "Callers first. What all its patterns share stands plain; where they differ, the ways stand beside each other.",
    ),
    segments(cluster.segments, names),
    h("h2", {}, "Examples"),
    h(
      "ul",
      {},
      ...cluster.examples.map((e) =>
        h(
          "li",
          {},
          drawn.includes(e)
            ? link(to("instance", e), e)
            : h("code", {}, `culprit show ${all.corpus.name} ${e}`),
        ),
      ),
    ),
    h("h2", {}, "Scenarios"),
    h(
      "ul",
      {},
      ...cluster.scenarios
        .slice(0, 20)
        .map((x) => h("li", {}, `${x.name} `, h("span", { class: "quiet" }, duration(x.time_ns)))),
    ),
    traces(cluster, all.corpus.traces),
    patterns(cluster, names),
  ];
}

function frame(name: string): Node {
  const [module = "", ...rest] = name.split("!");
  const mark = h("span", { class: "module" }, rest.length > 0 ? `${module}!` : "");
  mark.style.borderLeftColor = moduleColor(name, isDark());
  return h("div", { class: "frame", title: name }, mark, rest.length > 0 ? rest.join("!") : module);
}

function segments(list: ClusterDetails["clusters"][number]["segments"], names: string[]): Node {
  const box = h("div", { class: "segments" });
  for (const segment of list) {
    if (segment.shared) {
      box.append(h("div", { class: "shared" }, ...segment.shared.map((f) => frame(names[f]!))));
      continue;
    }
    const ways = segment.variants ?? [];
    const lengths = ways.map((w) => w.length);
    const row = h(
      "div",
      { class: "ways" },
      ...ways
        .slice(0, 12)
        .map((w) =>
          h(
            "div",
            { class: "way" },
            ...(w.length > 0
              ? w.map((f) => frame(names[f]!))
              : [h("div", { class: "frame quiet" }, "(nothing)")]),
          ),
        ),
    );
    box.append(
      h(
        "details",
        { class: "variant", open: ways.length <= 4 },
        h(
          "summary",
          {},
          `${ways.length} ways of ${Math.min(...lengths)} to ${Math.max(...lengths)} frames`,
        ),
        row,
      ),
    );
  }
  return box;
}

function traces(cluster: ClusterDetails["clusters"][number], all: number): Node | null {
  if (all <= 1 || cluster.by_trace.length === 0) return null;
  const most = cluster.by_trace[0]![1];
  const list = h("div", { class: "bars" });
  for (const [name, ns] of cluster.by_trace.slice(0, 60)) {
    const bar = h("i", {});
    bar.style.width = `${(100 * ns) / most}%`;
    list.append(
      h(
        "div",
        {},
        h("span", { class: "name", title: name }, name),
        h("span", { class: "track" }, bar),
        h("span", { class: "number" }, duration(ns)),
      ),
    );
  }
  const rest =
    cluster.by_trace.length - Math.min(60, cluster.by_trace.length) + cluster.traces_left_out;
  return h(
    "section",
    {},
    h("h2", {}, "Over traces"),
    list,
    rest > 0 && h("p", { class: "quiet" }, `and ${count(rest)} traces with less`),
  );
}

function patterns(cluster: ClusterDetails["clusters"][number], names: string[]): Node {
  return h(
    "details",
    {},
    h("summary", {}, `${cluster.patterns.length + cluster.patterns_left_out} patterns`),
    ...cluster.patterns.map((p) =>
      h(
        "div",
        { class: "pattern" },
        h("b", {}, duration(p.cost_ns)),
        ...p.frames.map((f) => frame(names[f]!)),
      ),
    ),
    cluster.patterns_left_out > 0 &&
      h(
        "p",
        { class: "quiet" },
        `and ${cluster.patterns_left_out} more: culprit mine -v shows them`,
      ),
  );
}
