// SPDX-License-Identifier: Apache-2.0
//
// How much each component delays everyone (003 §3): time in its waits, its own
// running, and what of the waiting is the same wait delaying several.

import { part } from "./data";
import { h, type Shown } from "./dom";
import { duration } from "./format";
import type { ImpactTable } from "./model";
import { VirtualTable, type Column } from "./table";

export async function impactView(): Promise<Shown> {
  const { rows } = await part<ImpactTable>("impact");
  const percent = (key: "ia_wait" | "ia_run" | "ia_opt", title: string, help: string): Column => ({
    key,
    title,
    help,
    width: "8.5rem",
    number: true,
    text: (r) => `${(100 * rows[r]![key]).toFixed(2)} %`,
    value: (r) => rows[r]![key],
    bar: (r) => rows[r]![key],
  });
  const time = (
    key: "d_wait_ns" | "d_run_ns" | "d_waitdist_ns",
    title: string,
    help: string,
  ): Column => ({
    key,
    title,
    help,
    width: "7rem",
    number: true,
    text: (r) => duration(rows[r]![key]),
    value: (r) => rows[r]![key],
  });
  const table = new VirtualTable({
    rows: rows.length,
    label: "components",
    sort: "-ia_wait",
    height: "calc(100vh - 14rem)",
    filter: (r, words) => words.every((w) => rows[r]!.component.toLowerCase().includes(w)),
    columns: [
      {
        key: "component",
        title: "component",
        width: "minmax(12rem, 1fr)",
        text: (r) => rows[r]!.component,
      },
      percent(
        "ia_wait",
        "waits",
        "share of the instances' time in the component's top-level waits",
      ),
      percent("ia_run", "runs", "share of the instances' time in which it runs"),
      percent(
        "ia_opt",
        "propagated",
        "share that is one wait delaying several instances: what could be saved by ending it once",
      ),
      time("d_wait_ns", "wait time", "D_wait"),
      time("d_waitdist_ns", "distinct", "D_waitdist: each wait event once"),
      time("d_run_ns", "run time", "D_run"),
    ],
  });
  return [h("h1", {}, "Impact of components"), table.element];
}
