// SPDX-License-Identifier: Apache-2.0
//
// What a person has said of a behaviour: known, ignored, fixed, with a note. A
// server keeps it in its store of signatures; in a file it stays in the page
// until exported as a store that `culprit --store` reads.

import { isServed, token } from "./data";
import { h } from "./dom";

export interface Mark {
  name: string;
  kind: string;
  status: string;
  note: string;
  owner: string;
  cluster: string;
  patterns: string[][];
}

const marks = new Map<string, Mark>();

export function allMarks(): Mark[] {
  return [...marks.values()];
}

export function statusOf(cluster: string, recorded: string): string {
  return marks.get(cluster)?.status ?? recorded;
}

// The store's own format.
export function marksAsJson(): string {
  const signatures = allMarks().map((m) => ({ ...m, common: [], source: "report", added: "" }));
  return `${JSON.stringify({ culprit_signatures: 1, signatures }, null, 2)}\n`;
}

export function markControl(
  cluster: string,
  summary: string,
  status: string,
  signature: string,
  patterns: string[][],
  kind: string,
): Node {
  const said = h("span", { class: "quiet", role: "status" });
  const choice = h(
    "select",
    { "aria-label": "status", change: () => void set() },
    ...["new", "known", "fixed", "ignored"].map((x) =>
      h("option", { value: x, selected: x === statusOf(cluster, status) }, x),
    ),
  );
  const note = h("input", {
    type: "text",
    placeholder: "note",
    "aria-label": "note",
    value: marks.get(cluster)?.note ?? "",
    change: () => void set(),
  });
  async function set(): Promise<void> {
    const mark: Mark = {
      name: signature || summary,
      kind,
      status: choice.value,
      note: note.value,
      owner: "",
      cluster,
      patterns,
    };
    if (isServed()) {
      const response = await fetch("api/v1/signatures", {
        method: "POST",
        headers: { "Content-Type": "application/json", ...token() },
        body: JSON.stringify({ cluster, name: mark.name, status: mark.status, note: mark.note }),
      });
      said.textContent = response.ok
        ? "stored"
        : `not stored: ${response.status} ${await response.text()}`;
      if (!response.ok) return;
    } else {
      said.textContent = "kept in this page: export it under Signatures";
    }
    marks.set(cluster, mark);
  }
  return h("span", { class: "mark" }, choice, " ", note, " ", said);
}
