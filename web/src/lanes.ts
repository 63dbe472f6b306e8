// SPDX-License-Identifier: Apache-2.0
//
// One instance as lanes of threads (003 figure 1): the critical path is filled,
// waits are outlined, and an arrow shows whose end let whom go on. Zoom by wheel
// or + and -, move by dragging or arrow keys.

import { kindColor } from "./colors";
import { overview, part } from "./data";
import { h, link, s, type Shown } from "./dom";
import { duration } from "./format";
import type { InstanceIndex, InstanceView } from "./model";
import { to } from "./route";

const kLane = 34;
const kLeft = 190;

export async function instanceIndex(): Promise<InstanceIndex> {
  const all = await overview();
  const none: InstanceIndex = { names: [], scenarios: [], dur_ns: [] };
  return all.parts.includes("instances") ? part<InstanceIndex>("instances") : none;
}

export async function instanceView(name: string): Promise<Shown> {
  if (name === "") return instanceList();
  const all = await overview();
  const place = (await instanceIndex()).names.indexOf(name);
  if (place < 0) {
    throw new Error(
      `this report does not hold ${name}; "culprit show ${all.corpus.name} ${name}" draws it`,
    );
  }
  const data = await part<InstanceView>(`instance-${place}`);
  return [
    h("p", {}, link(to("instance"), "‹ all instances here")),
    h("h1", {}, `${data.scenario}, ${duration(data.dur_ns)}`),
    h("p", { class: "facts" }, h("code", {}, `culprit show ${all.corpus.name} ${data.name}`)),
    new Lanes(data).element,
  ];
}

async function instanceList(): Promise<Shown> {
  const index = await instanceIndex();
  const item = (name: string, i: number): Node =>
    h(
      "li",
      {},
      link(to("instance", name), `${index.scenarios[i]} ${duration(index.dur_ns[i]!)}`),
      " ",
      h("span", { class: "quiet" }, name),
    );
  return [
    h("h1", {}, "Instances"),
    h(
      "p",
      { class: "quiet" },
      "Examples of the behaviours at the top; culprit show draws any other.",
    ),
    index.names.length === 0
      ? h("p", {}, "This report holds none.")
      : h("ul", {}, ...index.names.map(item)),
  ];
}

class Lanes {
  readonly element: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly words: HTMLElement;
  private begin = 0;
  private end: number;
  private width = 900;
  private focus = 0;

  constructor(private readonly data: InstanceView) {
    this.end = Math.max(1, data.dur_ns);
    this.words = h("p", { class: "flame-words", role: "status" });
    this.svg = s("svg", {
      class: "lanes",
      tabindex: 0,
      role: "application",
      "aria-label": "thread lanes; arrow keys move through the path, plus and minus zoom",
    });
    this.svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.svg.addEventListener("keydown", (e) => this.key(e));
    this.svg.addEventListener("pointerdown", (e) => this.drag(e));
    this.element = h(
      "div",
      { class: "flame" },
      h(
        "div",
        { class: "toolbar" },
        h("button", { type: "button", click: () => this.zoom(0.5, 0.5) }, "+"),
        h("button", { type: "button", click: () => this.zoom(2, 0.5) }, "−"),
        h(
          "button",
          {
            type: "button",
            click: () => {
              this.begin = 0;
              this.end = this.data.dur_ns;
              this.draw();
            },
          },
          "whole",
        ),
      ),
      this.words,
      this.svg,
      data.left_out > 0 &&
        h(
          "p",
          { class: "quiet" },
          `${data.left_out} shorter parts are left out: culprit show has them all`,
        ),
    );
    new ResizeObserver(() => {
      this.width = Math.max(400, this.element.clientWidth);
      this.draw();
    }).observe(this.element);
    this.tell();
  }

  private x(ns: number): number {
    return kLeft + ((ns - this.begin) / (this.end - this.begin)) * (this.width - kLeft - 10);
  }

  private draw(): void {
    const { threads, segments } = this.data;
    const height = threads.length * kLane + 26;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", String(height));
    const clip = s(
      "clipPath",
      { id: "lanes-clip" },
      s("rect", { x: kLeft, y: 0, width: Math.max(0, this.width - kLeft), height }),
    );
    const marker = s(
      "marker",
      {
        id: "arrow",
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 7,
        markerHeight: 7,
        orient: "auto-start-reverse",
      },
      s("path", { d: "M0 0 L8 4 L0 8 z", class: "arrowhead" }),
    );
    const body = s("g", { "clip-path": "url(#lanes-clip)" });
    const labels = s("g", {});
    threads.forEach((thread, i) => {
      labels.append(
        s("line", {
          x1: 0,
          x2: this.width,
          y1: (i + 1) * kLane,
          y2: (i + 1) * kLane,
          class: "grid",
        }),
        s(
          "text",
          { x: 4, y: i * kLane + kLane / 2 + 4 },
          thread.name.length > 28 ? `${thread.name.slice(0, 27)}…` : thread.name,
          s("title", {}, thread.name),
        ),
      );
    });
    for (let i = 0; i < segments.kind.length; ++i) {
      const from = this.x(segments.begin_ns[i]!);
      const till = this.x(segments.begin_ns[i]! + segments.dur_ns[i]!);
      if (till < kLeft || from > this.width) continue;
      const lane = segments.thread[i]!;
      const wait = segments.kind[i] === "wait";
      const rect = s(
        "rect",
        {
          x: from,
          y: lane * kLane + (wait ? 4 : 9),
          width: Math.max(0.6, till - from),
          height: kLane - (wait ? 8 : 18),
          class: `seg ${wait ? "waiting" : ""} ${i === this.focus ? "focus" : ""}`,
        },
        s("title", {}, `${segments.text[i]} ${duration(segments.dur_ns[i]!)}`),
      );
      if (!wait) rect.style.fill = kindColor(segments.kind[i]!);
      rect.addEventListener("click", () => {
        this.focus = i;
        this.draw();
        this.tell();
      });
      body.append(rect);
      if (wait) this.arrow(body, i);
    }
    const axis = s("g", {});
    for (let k = 0; k <= 4; ++k) {
      const ns = this.begin + ((this.end - this.begin) * k) / 4;
      axis.append(
        s(
          "text",
          {
            x: this.x(ns),
            y: height - 6,
            "text-anchor": k === 4 ? "end" : k === 0 ? "start" : "middle",
          },
          duration(Math.round(ns)),
        ),
      );
    }
    this.svg.replaceChildren(clip, marker, labels, body, axis);
  }

  // From the lane of whoever ended the wait to the waiting thread's.
  private arrow(body: SVGGElement, wait: number): void {
    const { segments } = this.data;
    let last = -1;
    for (
      let i = wait + 1;
      i < segments.parent.length &&
      segments.begin_ns[i]! < segments.begin_ns[wait]! + segments.dur_ns[wait]!;
      ++i
    ) {
      if (segments.parent[i] === wait) last = i;
    }
    if (last < 0 || segments.thread[last] === segments.thread[wait]) return;
    const at = this.x(segments.begin_ns[wait]! + segments.dur_ns[wait]!);
    if (at < kLeft || at > this.width) return;
    const from = segments.thread[last]!;
    const into = segments.thread[wait]!;
    const way = into < from ? 0.75 : 0.25;
    body.append(
      s("line", {
        x1: at,
        y1: from * kLane + kLane / 2,
        x2: at,
        y2: into * kLane + kLane * way,
        class: "arrow",
        "marker-end": "url(#arrow)",
      }),
    );
  }

  private zoom(factor: number, around: number): void {
    const span = Math.max(100, Math.min(this.data.dur_ns, (this.end - this.begin) * factor));
    const centre = this.begin + (this.end - this.begin) * around;
    this.begin = Math.max(0, Math.min(this.data.dur_ns - span, centre - span * around));
    this.end = this.begin + span;
    this.draw();
  }

  private shift(share: number): void {
    const span = this.end - this.begin;
    this.begin = Math.max(0, Math.min(this.data.dur_ns - span, this.begin + span * share));
    this.end = this.begin + span;
    this.draw();
  }

  private wheel(event: WheelEvent): void {
    if (!event.ctrlKey && Math.abs(event.deltaY) < Math.abs(event.deltaX)) return;
    event.preventDefault();
    const box = this.svg.getBoundingClientRect();
    const around = Math.max(
      0,
      Math.min(1, (event.clientX - box.left - kLeft) / (box.width - kLeft)),
    );
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, around);
  }

  private drag(event: PointerEvent): void {
    let last = event.clientX;
    const move = (e: PointerEvent): void => {
      this.shift(-(e.clientX - last) / (this.width - kLeft));
      last = e.clientX;
    };
    const up = (): void => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
  }

  private key(event: KeyboardEvent): void {
    const last = this.data.segments.kind.length - 1;
    if (event.key === "ArrowRight") this.focus = Math.min(last, this.focus + 1);
    else if (event.key === "ArrowLeft") this.focus = Math.max(0, this.focus - 1);
    else if (event.key === "+" || event.key === "=") return this.zoom(0.5, 0.5);
    else if (event.key === "-") return this.zoom(2, 0.5);
    else return;
    event.preventDefault();
    this.draw();
    this.tell();
  }

  private tell(): void {
    const { segments, threads } = this.data;
    const i = this.focus;
    if (segments.kind[i] === undefined) {
      this.words.textContent = "nothing in the trace explains this instance";
      return;
    }
    const note = segments.note[i] ? ` (${segments.note[i]})` : "";
    this.words.textContent = `${threads[segments.thread[i]!]?.name ?? ""}: ${segments.text[i]}${note}, ${duration(segments.dur_ns[i]!)} from ${duration(segments.begin_ns[i]!)}`;
  }
}
