// SPDX-License-Identifier: Apache-2.0
//
// The kinds of work guards know of a program: how long each takes, from when on
// a unit is slow, and how many were.

import { part } from "./data";
import { h, type Shown } from "./dom";
import { count, duration } from "./format";
import type { UnitTypes } from "./model";
import { sparkline } from "./sparkline";
import { VirtualTable, type Column } from "./table";

// The bar of a histogram in which a time lies.
function barOf(ns: number): number {
  return ns < 1000 ? 0 : Math.floor(2 * Math.log2(ns / 1000));
}

export async function unitsView(): Promise<Shown> {
  const { program, floor_ns, types } = await part<UnitTypes>("units");
  const time = (key: "p50_ns" | "p99_ns" | "max_ns" | "threshold_ns", title: string): Column => ({
    key,
    title,
    width: "5.6rem",
    number: true,
    text: (r) => duration(types[r]![key]),
    value: (r) => types[r]![key],
  });
  const number = (key: "samples" | "slow", title: string, help: string): Column => ({
    key,
    title,
    help,
    width: "5.5rem",
    number: true,
    text: (r) => count(types[r]![key]),
    value: (r) => types[r]![key],
  });
  const table = new VirtualTable({
    rows: types.length,
    label: "unit types",
    sort: "-slow",
    height: "calc(100vh - 16rem)",
    filter: (r, words) => words.every((w) => types[r]!.name.toLowerCase().includes(w)),
    columns: [
      { key: "name", title: "type", width: "minmax(9rem, 1fr)", text: (r) => types[r]!.name },
      { key: "unit", title: "unit", width: "5rem", text: (r) => types[r]!.unit },
      number("slow", "slow", "units reported as slow"),
      {
        key: "longest_ns",
        title: "longest",
        help: "of the slow ones",
        width: "5.6rem",
        number: true,
        text: (r) => (types[r]!.slow > 0 ? duration(types[r]!.longest_ns) : ""),
        value: (r) => types[r]!.longest_ns,
      },
      time("threshold_ns", "threshold"),
      number("samples", "measured", "units measured in training"),
      time("p50_ns", "p50"),
      time("p99_ns", "p99"),
      time("max_ns", "slowest"),
      {
        key: "spread",
        title: "times in training",
        width: "8.5rem",
        text: () => "",
        cell: (r) => sparkline(types[r]!.histogram, barOf(types[r]!.threshold_ns)),
      },
    ],
  });
  return [
    h("h1", {}, "Unit types"),
    h(
      "p",
      { class: "quiet" },
      `${program}: ${count(types.length)} kinds of work; no threshold is below ${duration(floor_ns)}; the orange line is the threshold`,
    ),
    table.element,
  ];
}
