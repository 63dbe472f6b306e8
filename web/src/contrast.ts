// SPDX-License-Identifier: Apache-2.0
//
// What slow instances of a scenario do that fast ones do not (003 §4): sets of
// functions that wait, that end waits, and that run.

import { overview, part } from "./data";
import { h, link, type Shown } from "./dom";
import { count, duration, ratio } from "./format";
import type { ContrastView } from "./model";
import { to } from "./route";

export async function contrastView(target: string): Promise<Shown> {
  const all = await overview();
  const names = all.parts.filter((p) => p.startsWith("contrast-")).map((p) => Number(p.slice(9)));
  if (names.length === 0) {
    return [
      h("h1", {}, "Contrast"),
      h("p", {}, "No scenario has enough fast and slow instances to contrast."),
    ];
  }
  const chosen = target === "" ? names[0]! : Number(target);
  const choice = h(
    "select",
    {
      "aria-label": "scenario",
      change: () => {
        location.hash = to("contrast", choice.value);
      },
    },
    ...names.map((n) => h("option", { value: n, selected: n === chosen }, all.scenarios[n]!.name)),
  );
  if (!names.includes(chosen)) {
    return [
      h("h1", {}, "Contrast"),
      h("div", { class: "toolbar" }, choice),
      h("p", {}, "This scenario has too few fast or slow instances to contrast."),
    ];
  }
  const data = await part<ContrastView>(`contrast-${chosen}`);
  return [
    h("h1", {}, "Contrast"),
    h("div", { class: "toolbar" }, choice),
    h(
      "p",
      { class: "facts" },
      `${count(data.slow_instances)} slow instances (above ${duration(data.slow_above_ns)}) against ${count(data.fast_instances)} fast ones (below ${duration(data.fast_below_ns)}); ` +
        `impactful time covered ${(100 * data.itc).toFixed(1)} %, total ${(100 * data.ttc).toFixed(1)} %; ${duration(data.pruned_ns)} for devices alone left out`,
    ),
    data.patterns.length === 0
      ? h("p", {}, "Nothing sets the slow ones apart.")
      : h("ol", { class: "patterns" }, ...data.patterns.map(pattern)),
    data.patterns_left_out > 0 &&
      h("p", { class: "quiet" }, `and ${data.patterns_left_out} more: culprit contrast shows them`),
  ];
}

function pattern(p: ContrastView["patterns"][number]): Node {
  const set = (title: string, frames: string[]): Node | false =>
    frames.length > 0 &&
    h(
      "div",
      { class: "set" },
      h("b", {}, title),
      ...frames.map((f) => h("div", { class: "frame" }, f)),
    );
  return h(
    "li",
    {},
    h(
      "p",
      {},
      `${duration(p.count > 0 ? Math.round(p.cost_ns / p.count) : 0)} each, ${duration(p.cost_ns)} in ${count(p.instances)} instances of ${count(p.traces)} traces; `,
      h(
        "b",
        {},
        p.slow_only || p.ratio === null
          ? "only in slow ones"
          : `${ratio(p.ratio)} as long as in fast ones`,
      ),
      `, p = ${p.p_value.toPrecision(2)}`,
    ),
    h(
      "div",
      { class: "sets" },
      set("waits in", p.wait),
      set("ended by", p.unwait),
      set("runs", p.running),
    ),
    h("p", { class: "quiet" }, ...p.examples.flatMap((e) => [link(to("instance", e), e), " "])),
  );
}
