// SPDX-License-Identifier: Apache-2.0
//
// Flame and icicle graph of stacks, on a canvas: width is time, colour the module
// or the change of time per instance, from fast to slow ones or from an older
// recording to this one (then width is the time of both). Zoom by click or Enter, move by
// arrow keys, search by text; what has the focus is told in words.

import { differenceColor, moduleColor } from "./colors";
import { part } from "./data";
import { h, type Shown } from "./dom";
import { duration, share } from "./format";
import type { FlameTree } from "./model";
import { setParameter } from "./route";
import { isDark } from "./theme";

const kRow = 18;

interface Box {
  node: number; // -1: all
  depth: number;
  x: number;
  width: number;
}

export async function flameView(parameters: URLSearchParams): Promise<Shown> {
  const holder = h("div", {});
  const kinds: [string, string][] = [
    ["wait", "waits"],
    ["run", "CPU"],
  ];
  let kind = parameters.get("kind") === "run" ? "run" : "wait";
  const choice = h(
    "select",
    {
      "aria-label": "kind of time",
      change: () => {
        kind = choice.value;
        setParameter("kind", kind);
        void show();
      },
    },
    ...kinds.map(([value, text]) => h("option", { value, selected: value === kind }, text)),
  );
  async function show(): Promise<void> {
    const tree = await part<FlameTree>(`flame-${kind}`);
    holder.replaceChildren(new Flame(tree, parameters).element);
  }
  await show();
  return [h("h1", {}, "Flame graph"), h("div", { class: "toolbar" }, choice), holder];
}

class Flame {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly words: HTMLElement;
  private readonly children: number[][] = [];
  private readonly roots: number[] = [];
  private boxes: Box[] = [];
  private zoom = -1;
  private focus = -1;
  private query = "";
  private icicle: boolean;
  private mode: string;
  private levels = 1;

  constructor(
    private readonly tree: FlameTree,
    parameters: URLSearchParams,
  ) {
    this.icicle = parameters.get("from") !== "bottom";
    const asked = parameters.get("mode") ?? "all";
    const known = tree.before_ns ? ["all", "diff", "before"] : ["all", "diff"];
    this.mode = known.includes(asked) ? asked : "all";
    this.query = (parameters.get("q") ?? "").toLowerCase();
    tree.parent.forEach((parent, node) => {
      this.children.push([]);
      if (parent < 0) this.roots.push(node);
      else this.children[parent]!.push(node);
    });
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": "flame graph; arrow keys move, Enter zooms, Escape zooms out",
      click: (e) => this.click(e as MouseEvent),
      mousemove: (e) => this.hover(e as MouseEvent),
      keydown: (e) => this.key(e as KeyboardEvent),
    });
    this.words = h("p", { class: "flame-words", role: "status" });
    const search = h("input", {
      type: "search",
      placeholder: "search functions",
      "aria-label": "search functions",
      value: this.query,
      input: () => {
        this.query = search.value.toLowerCase();
        setParameter("q", search.value);
        this.draw();
        this.tell();
      },
    });
    const mode = h(
      "select",
      {
        "aria-label": "what the colours say",
        change: () => {
          this.mode = mode.value;
          setParameter("mode", mode.value);
          this.zoomTo(-1);
        },
      },
      h("option", { value: "all", selected: this.mode === "all" }, "coloured by module"),
      h("option", { value: "diff", selected: this.mode === "diff" }, "slow against fast instances"),
      tree.before_ns &&
        h("option", { value: "before", selected: this.mode === "before" }, "now against before"),
    );
    const flip = h(
      "button",
      {
        type: "button",
        click: () => {
          this.icicle = !this.icicle;
          setParameter("from", this.icicle ? "" : "bottom");
          this.draw();
        },
      },
      "flip",
    );
    const reset = h("button", { type: "button", click: () => this.zoomTo(-1) }, "zoom out");
    this.element = h(
      "div",
      { class: "flame" },
      h("div", { class: "toolbar" }, search, mode, flip, reset),
      this.words,
      this.canvas,
      tree.left_out_ns > 0 &&
        h("p", { class: "quiet" }, `${duration(tree.left_out_ns)} in smaller stacks is left out`),
    );
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.tell();
  }

  private total(): number {
    return this.roots.reduce((sum, r) => sum + this.tree.total_ns[r]!, 0);
  }

  // What a box's width stands for. Beside an older recording it is the time of
  // an average instance now and before together, so what is gone is drawn too.
  private weight(node: number): number {
    const { total_ns, before_ns, instances, before_instances } = this.tree;
    if (this.mode !== "before" || !before_ns) return total_ns[node]!;
    const now = instances > 0 ? total_ns[node]! / instances : 0;
    return now + (before_instances ? before_ns[node]! / before_instances : 0);
  }

  private layout(width: number): void {
    this.boxes = [];
    this.levels = 1;
    // Without recursion: a stack of ten thousand frames is drawn too.
    const place = (first: number[], from: number, level: number, scale: number): void => {
      const open: [number[], number, number][] = [[first, from, level]];
      for (let top = open.pop(); top !== undefined; top = open.pop()) {
        const [nodes, begin, depth] = top;
        let x = begin;
        for (const node of [...nodes].sort((a, b) => (this.name(a) < this.name(b) ? -1 : 1))) {
          const w = this.weight(node) * scale;
          if (w >= 0.4) {
            this.boxes.push({ node, depth, x, width: w });
            this.levels = Math.max(this.levels, depth + 1);
            open.push([this.children[node]!, x, depth + 1]);
          }
          x += w;
        }
      }
    };
    if (this.zoom < 0) {
      const total = this.roots.reduce((sum, r) => sum + this.weight(r), 0);
      this.boxes.push({ node: -1, depth: 0, x: 0, width });
      if (total > 0) place(this.roots, 0, 1, width / total);
      return;
    }
    const above: number[] = [];
    for (let n = this.zoom; n >= 0; n = this.tree.parent[n]!) above.unshift(n);
    above.unshift(-1);
    above.forEach((node, depth) => this.boxes.push({ node, depth, x: 0, width }));
    this.levels = above.length;
    place(this.children[this.zoom]!, 0, above.length, width / this.weight(this.zoom));
  }

  private name(node: number): string {
    return node < 0 ? "all" : this.tree.names[this.tree.frame[node]!]!;
  }

  private y(depth: number): number {
    return this.icicle ? depth * kRow : (this.levels - 1 - depth) * kRow;
  }

  // How much of what instances spend more (or less) than those they are held
  // against is in this node; the root of it, so that small parts can still be seen.
  private change(node: number): number {
    const all = this.roots.reduce((sum, r) => sum + this.difference(r), 0);
    if (node < 0 || all === 0) return 0;
    const part = this.difference(node) / Math.abs(all);
    return Math.sign(part) * Math.sqrt(Math.min(1, Math.abs(part)));
  }

  private difference(node: number): number {
    const { fast_ns, slow_ns, fast_instances, slow_instances } = this.tree;
    if (this.mode === "before") {
      const { total_ns, before_ns, instances, before_instances } = this.tree;
      if (!before_ns || !before_instances || instances === 0) return 0;
      return total_ns[node]! / instances - before_ns[node]! / before_instances;
    }
    if (fast_instances === 0 || slow_instances === 0) return 0;
    return slow_ns[node]! / slow_instances - fast_ns[node]! / fast_instances;
  }

  private draw(): void {
    const width = this.element.clientWidth;
    if (width === 0) return;
    this.layout(width);
    const height = this.levels * kRow;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const dark = isDark();
    for (const box of this.boxes) this.drawBox(context, box, dark);
  }

  private drawBox(context: CanvasRenderingContext2D, box: Box, dark: boolean): void {
    const name = this.name(box.node);
    const found = this.query !== "" && name.toLowerCase().includes(this.query);
    context.fillStyle = found
      ? "#d55e00"
      : box.node < 0
        ? dark
          ? "#444"
          : "#ddd"
        : this.mode !== "all"
          ? differenceColor(this.change(box.node), dark)
          : moduleColor(name, dark);
    context.fillRect(box.x, this.y(box.depth), Math.max(0.5, box.width - 0.7), kRow - 1);
    if (box.node === this.focus) {
      context.strokeStyle = dark ? "#fff" : "#000";
      context.lineWidth = 2;
      context.strokeRect(box.x + 1, this.y(box.depth) + 1, Math.max(0, box.width - 2.7), kRow - 3);
    }
    if (box.width < 30) return;
    context.fillStyle = found ? "#fff" : dark ? "#eee" : "#111";
    const room = Math.floor((box.width - 6) / 6.4);
    const short = name.length <= room ? name : `${name.slice(0, Math.max(0, room - 1))}…`;
    context.fillText(short, box.x + 3, this.y(box.depth) + kRow / 2);
  }

  private at(event: MouseEvent): number | undefined {
    const depth = Math.floor(
      (this.icicle ? event.offsetY : this.levels * kRow - event.offsetY) / kRow,
    );
    return this.boxes.find(
      (b) => b.depth === depth && event.offsetX >= b.x && event.offsetX < b.x + b.width,
    )?.node;
  }

  private click(event: MouseEvent): void {
    const node = this.at(event);
    if (node !== undefined) this.zoomTo(node);
  }

  private hover(event: MouseEvent): void {
    const node = this.at(event);
    if (node === undefined || node === this.focus) return;
    this.focus = node;
    this.draw();
    this.tell();
  }

  private zoomTo(node: number): void {
    this.zoom = node;
    this.focus = node;
    this.draw();
    this.tell();
  }

  private siblings(node: number): number[] {
    const parent = node < 0 ? -1 : this.tree.parent[node]!;
    const list = node < 0 ? [-1] : parent < 0 ? this.roots : this.children[parent]!;
    return [...list].sort((a, b) => (this.name(a) < this.name(b) ? -1 : 1));
  }

  private key(event: KeyboardEvent): void {
    const down = this.icicle ? "ArrowDown" : "ArrowUp";
    const up = this.icicle ? "ArrowUp" : "ArrowDown";
    const around = this.siblings(this.focus);
    const place = around.indexOf(this.focus);
    let next: number | undefined;
    if (event.key === down) {
      const below = this.focus < 0 ? this.roots : this.children[this.focus]!;
      next =
        below.length > 0
          ? below.reduce((a, b) => (this.weight(b) > this.weight(a) ? b : a))
          : undefined;
    } else if (event.key === up) {
      next = this.focus < 0 ? undefined : this.tree.parent[this.focus]!;
    } else if (event.key === "ArrowRight") next = around[place + 1];
    else if (event.key === "ArrowLeft") next = around[place - 1];
    else if (event.key === "Enter") this.zoomTo(this.focus);
    else if (event.key === "Escape") this.zoomTo(-1);
    else return;
    event.preventDefault();
    if (next === undefined) return;
    this.focus = next;
    this.draw();
    this.tell();
  }

  private tell(): void {
    const node = this.focus;
    const { total_ns, fast_ns, slow_ns, fast_instances, slow_instances } = this.tree;
    const ns = node < 0 ? this.total() : total_ns[node]!;
    let text = `${this.name(node)}: ${duration(ns)}, ${share(ns, this.total())}`;
    const { before_ns, instances, before_instances } = this.tree;
    if (this.mode === "before" && before_ns && before_instances && node >= 0) {
      const now = instances > 0 ? Math.round(total_ns[node]! / instances) : 0;
      text += `; an instance ${duration(now)} now, ${duration(Math.round(before_ns[node]! / before_instances))} before`;
    } else if (node >= 0 && fast_instances > 0 && slow_instances > 0) {
      text += `; a slow instance ${duration(Math.round(slow_ns[node]! / slow_instances))}, a fast one ${duration(Math.round(fast_ns[node]! / fast_instances))}`;
    }
    if (this.query !== "")
      text += `; "${this.query}" is in ${share(this.found(), this.total())} of the time`;
    this.words.textContent = text;
  }

  // Time of the outermost frames that match, so that none counts twice.
  private found(): number {
    let sum = 0;
    const open = [...this.roots];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (this.name(node).toLowerCase().includes(this.query)) sum += this.tree.total_ns[node]!;
      else open.push(...this.children[node]!);
    }
    return sum;
  }
}
