// SPDX-License-Identifier: Apache-2.0
//
// What is known: signatures of the store and how much of this corpus they are,
// and the marks made in this page.

import { part } from "./data";
import { h, link, type Shown } from "./dom";
import { duration } from "./format";
import { allMarks, marksAsJson } from "./marks";
import type { SignatureRow } from "./model";
import { to } from "./route";

export async function signaturesView(): Promise<Shown> {
  const { signatures } = await part<{ signatures: SignatureRow[] }>("signatures");
  const marks = allMarks();
  return [
    h("h1", {}, "Signatures"),
    signatures.length === 0
      ? h("p", {}, "The store holds none: mark a behaviour, or use culprit signatures add.")
      : h(
          "ul",
          { class: "findings" },
          ...signatures.map((x) =>
            h(
              "li",
              {},
              h(
                "p",
                {},
                h("b", {}, x.name),
                " ",
                h("span", { class: `status ${x.status}` }, x.status),
                ` ${x.owner} `,
                h("span", { class: "quiet" }, x.note),
              ),
              h(
                "p",
                {},
                x.clusters.length === 0 ? "not seen here" : `${duration(x.time_ns)} here: `,
                ...x.clusters.flatMap((c) => [link(to("cluster", c), c), " "]),
              ),
            ),
          ),
        ),
    h("h2", {}, "Marked in this page"),
    marks.length === 0
      ? h("p", { class: "quiet" }, "Nothing yet. A behaviour's own view has the marks.")
      : h(
          "ul",
          {},
          ...marks.map((m) =>
            h("li", {}, link(to("cluster", m.cluster), m.name), ` ${m.status} ${m.note}`),
          ),
        ),
    h(
      "button",
      { type: "button", disabled: marks.length === 0, click: download },
      "Export as JSON",
    ),
  ];
}

function download(): void {
  const url = URL.createObjectURL(new Blob([marksAsJson()], { type: "application/json" }));
  const anchor = h("a", { href: url, download: "signatures.json" });
  anchor.click();
  URL.revokeObjectURL(url);
}
