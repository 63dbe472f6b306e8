// SPDX-License-Identifier: Apache-2.0
//
// The wait chains of a scenario: the critical paths of all its instances laid
// over each other, as a tree in which what is behind a wait stands below it;
// fast instances beside slow ones.

import { kindColor } from "./colors";
import { overview, part } from "./data";
import { h, link, type Shown } from "./dom";
import { count, duration, ratio } from "./format";
import type { Chains } from "./model";
import { to } from "./route";

export async function chainsView(target: string): Promise<Shown> {
  const all = await overview();
  const names = all.parts.filter((p) => p.startsWith("chains-")).map((p) => Number(p.slice(7)));
  if (names.length === 0) throw new Error("this report has no scenario with wait chains");
  const chosen = target === "" ? names[0]! : Number(target);
  if (!names.includes(chosen)) throw new Error(`this report has no chains of scenario ${target}`);
  const data = await part<Chains>(`chains-${chosen}`);
  const choice = h(
    "select",
    {
      "aria-label": "scenario",
      change: () => {
        location.hash = to("chains", choice.value);
      },
    },
    ...names.map((n) => h("option", { value: n, selected: n === chosen }, all.scenarios[n]!.name)),
  );
  const classes = data.fast_instances > 0 && data.slow_instances > 0;
  return [
    h("h1", {}, "Wait chains"),
    h("div", { class: "toolbar" }, choice),
    h(
      "p",
      { class: "facts" },
      classes
        ? `${count(data.instances)} instances; per instance of the ${count(data.slow_instances)} slow ones (above ${duration(data.slow_above_ns)}) and the ${count(data.fast_instances)} fast ones (below ${duration(data.fast_below_ns)})`
        : `${count(data.instances)} instances: too few, or too equal, to tell fast ones from slow ones`,
    ),
    new ChainTree(data).element,
    data.left_out_ns > 0 &&
      h("p", { class: "quiet" }, `${duration(data.left_out_ns)} in smaller chains is left out`),
    h(
      "p",
      {},
      link(to("contrast", String(chosen)), "what slow instances do that fast ones do not"),
    ),
  ];
}

class ChainTree {
  readonly element: HTMLElement;
  private readonly children = new Map<number, number[]>();
  private readonly most: number;

  constructor(private readonly data: Chains) {
    data.parent.forEach((parent, node) => {
      const list = this.children.get(parent);
      if (list) list.push(node);
      else this.children.set(parent, [node]);
    });
    for (const list of this.children.values()) list.sort((a, b) => this.weight(b) - this.weight(a));
    const roots = this.children.get(-1) ?? [];
    this.most = Math.max(
      1,
      ...roots.map((r) => Math.max(this.slow(r), this.fast(r), this.mean(r))),
    );
    this.element = h("ul", {
      class: "tree",
      role: "tree",
      keydown: (e) => this.key(e as KeyboardEvent),
    });
    this.element.append(...roots.slice(0, 200).map((r) => this.item(r, 1)));
    this.element.querySelector<HTMLElement>("[role=treeitem]")?.setAttribute("tabindex", "0");
  }

  private weight(n: number): number {
    return Math.max(this.slow(n), this.fast(n)) || this.mean(n);
  }
  private slow(n: number): number {
    return this.data.slow_instances > 0 ? this.data.slow_ns[n]! / this.data.slow_instances : 0;
  }
  private fast(n: number): number {
    return this.data.fast_instances > 0 ? this.data.fast_ns[n]! / this.data.fast_instances : 0;
  }
  private mean(n: number): number {
    return this.data.instances > 0 ? this.data.total_ns[n]! / this.data.instances : 0;
  }

  private item(node: number, level: number): HTMLElement {
    const { data } = this;
    const below = this.children.get(node) ?? [];
    const key = data.kind[node] === "wait" ? data.class[node]! : data.kind[node]!;
    const what =
      data.kind[node] === "wait" ? (key === "other" ? "wait" : `wait: ${key}`) : data.kind[node]!;
    const frames = data.stack[node]!.map((f) => data.names[f]!).join(" ‹ ");
    const line = h(
      "div",
      { class: "line" },
      h("span", { class: "twist", "aria-hidden": "true" }, below.length > 0 ? "▸" : ""),
      this.bars(node, key),
      h("span", { class: "tag" }, what),
      h("span", { class: "frames", title: frames }, frames),
    );
    const item = h("li", { role: "treeitem", "aria-level": level, tabindex: -1 }, line);
    item.setAttribute("aria-label", `${what} ${frames}, ${this.words(node)}`);
    if (below.length > 0) {
      item.setAttribute("aria-expanded", "false");
      line.addEventListener("click", () => this.toggle(item, node, level));
      item.dataset.node = String(node);
    }
    return item;
  }

  private words(node: number): string {
    const fast = this.fast(node);
    const slow = this.slow(node);
    if (this.data.slow_instances === 0 || this.data.fast_instances === 0)
      return `${duration(Math.round(this.mean(node)))} an instance`;
    const change = fast === 0 ? "only in slow ones" : ratio(slow / fast);
    return `slow ${duration(Math.round(slow))}, fast ${duration(Math.round(fast))}${slow > 0 ? `, ${change}` : ""}`;
  }

  private bars(node: number, key: string): Node {
    const bar = (value: number, name: string): HTMLElement => {
      const piece = h("i", { class: name });
      piece.style.width = `${(100 * value) / this.most}%`;
      piece.style.background = kindColor(key);
      return piece;
    };
    const both = this.data.slow_instances > 0 && this.data.fast_instances > 0;
    return h(
      "span",
      { class: "pair", title: this.words(node) },
      h(
        "span",
        { class: "pair-bars" },
        ...(both
          ? [bar(this.slow(node), "slow"), bar(this.fast(node), "fast")]
          : [bar(this.mean(node), "slow")]),
      ),
      h("span", { class: "pair-words" }, this.words(node)),
    );
  }

  private toggle(item: HTMLElement, node: number, level: number): void {
    const open = item.getAttribute("aria-expanded") === "true";
    item.setAttribute("aria-expanded", open ? "false" : "true");
    item.querySelector(":scope > .line > .twist")!.textContent = open ? "▸" : "▾";
    if (open) {
      item.querySelector(":scope > ul")?.remove();
      return;
    }
    const below = this.children.get(node)!;
    const shown = below.slice(0, 200);
    const list = h("ul", { role: "group" }, ...shown.map((n) => this.item(n, level + 1)));
    if (below.length > shown.length)
      list.append(h("li", { class: "quiet" }, `and ${below.length - shown.length} smaller ones`));
    item.append(list);
    // A chain of single steps opens at once.
    if (shown.length === 1) {
      const only = list.firstElementChild as HTMLElement;
      if (only.dataset.node) this.toggle(only, Number(only.dataset.node), level + 1);
    }
  }

  private key(event: KeyboardEvent): void {
    const items = [...this.element.querySelectorAll<HTMLElement>("[role=treeitem]")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const item = items[at];
    if (!item) return;
    const level = Number(item.getAttribute("aria-level"));
    const expanded = item.getAttribute("aria-expanded");
    let next: HTMLElement | null | undefined;
    if (event.key === "ArrowDown") next = items[at + 1];
    else if (event.key === "ArrowUp") next = items[at - 1];
    else if (event.key === "ArrowRight") {
      if (expanded === "false") this.toggle(item, Number(item.dataset.node), level);
      else if (expanded === "true") next = items[at + 1];
    } else if (event.key === "ArrowLeft") {
      if (expanded === "true") this.toggle(item, Number(item.dataset.node), level);
      else next = item.parentElement?.closest<HTMLElement>("[role=treeitem]");
    } else if (event.key === "Enter" && expanded !== null)
      this.toggle(item, Number(item.dataset.node), level);
    else return;
    event.preventDefault();
    if (next) {
      item.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  }
}
