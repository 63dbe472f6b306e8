// SPDX-License-Identifier: Apache-2.0
//
// A table of any number of rows: only those in sight are elements; on paper the
// first kPrinted. Sortable by its headers, filterable by text, moved through by arrow keys, opened by Enter.
// To a screen reader it is a grid that tells its whole size.

import { h } from "./dom";
import { setParameter, current } from "./route";

export interface Column {
  key: string;
  title: string;
  help?: string;
  width: string; // of a grid track
  number?: boolean;
  text: (row: number) => string;
  value?: (row: number) => number | string; // what it sorts by; text otherwise
  cell?: (row: number) => Node;
  bar?: (row: number) => number; // a share, drawn behind the text
}

export interface TableOptions {
  rows: number;
  columns: Column[];
  filter?: (row: number, words: string[]) => boolean;
  open?: (row: number) => void;
  sort: string; // key, "-" before it for descending
  label: string;
  height?: string;
  controls?: Node[];
  keep?: (row: number) => boolean;
}

const kRowHeight = 28;
const kMargin = 12;
const kPrinted = 200;

export class VirtualTable {
  readonly element: HTMLElement;
  private readonly body: HTMLElement;
  private readonly viewport: HTMLElement;
  private readonly status: HTMLElement;
  private order: number[] = [];
  private sort: string;
  private words: string[] = [];
  private active = 0;

  constructor(private readonly options: TableOptions) {
    const parameters = current().parameters;
    this.sort = parameters.get("sort") ?? options.sort;
    const query = parameters.get("q") ?? "";
    this.words = split(query);
    const search = h("input", {
      type: "search",
      placeholder: "filter",
      "aria-label": `filter ${options.label}`,
      value: query,
      input: () => this.search(search.value),
    });
    this.status = h("span", { class: "quiet", role: "status" });
    this.body = h("div", { class: "rows", role: "rowgroup" });
    this.viewport = h("div", {
      class: "viewport",
      tabindex: 0,
      role: "grid",
      "aria-label": options.label,
      scroll: () => this.draw(),
      keydown: (event) => this.key(event as KeyboardEvent),
    });
    if (options.height) this.viewport.style.maxHeight = options.height;
    this.viewport.append(this.header(), this.body);
    this.element = h(
      "div",
      { class: "table" },
      h(
        "div",
        { class: "toolbar" },
        options.filter && search,
        ...(options.controls ?? []),
        this.status,
      ),
      this.viewport,
    );
    new ResizeObserver(() => this.draw()).observe(this.viewport);
    this.refresh();
    const print = (): void => {
      if (this.element.isConnected) this.drawForPaper();
      else window.removeEventListener("beforeprint", print);
    };
    const back = (): void => {
      if (this.element.isConnected) this.draw();
      else window.removeEventListener("afterprint", back);
    };
    window.addEventListener("beforeprint", print);
    window.addEventListener("afterprint", back);
  }

  // Sorts and filters again, after what the columns tell has changed.
  refresh(): void {
    const { rows, filter, keep } = this.options;
    this.order = [];
    for (let row = 0; row < rows; ++row) {
      if (keep && !keep(row)) continue;
      if (!filter || this.words.length === 0 || filter(row, this.words)) this.order.push(row);
    }
    this.sortOrder();
    this.active = 0;
    this.status.textContent =
      this.order.length === rows ? `${rows} rows` : `${this.order.length} of ${rows} rows`;
    this.viewport.setAttribute("aria-rowcount", String(this.order.length + 1));
    this.body.style.height = `${this.order.length * kRowHeight}px`;
    this.draw();
  }

  private sortOrder(): void {
    const descending = this.sort.startsWith("-");
    const column = this.options.columns.find((c) => c.key === this.sort.replace(/^-/, ""));
    if (!column) return;
    const value = column.value ?? column.text;
    const keys = new Map<number, number | string>(this.order.map((row) => [row, value(row)]));
    this.order.sort((a, b) => {
      const x = keys.get(a)!;
      const y = keys.get(b)!;
      const less = x < y ? -1 : x > y ? 1 : 0;
      return less === 0 ? a - b : descending ? -less : less;
    });
  }

  private search(text: string): void {
    this.words = split(text);
    setParameter("q", text);
    this.viewport.scrollTop = 0;
    this.refresh();
  }

  private header(): HTMLElement {
    const head = h("div", { class: "row head", role: "row", "aria-rowindex": 1 });
    head.style.gridTemplateColumns = this.tracks();
    for (const column of this.options.columns) {
      const button = h(
        "button",
        { type: "button", title: column.help, click: () => this.sortBy(column) },
        column.title,
      );
      const cell = h("div", { role: "columnheader", class: column.number ? "number" : "" }, button);
      cell.dataset.key = column.key;
      head.append(cell);
    }
    this.mark(head);
    return head;
  }

  private mark(head: Element): void {
    const key = this.sort.replace(/^-/, "");
    for (const cell of head.children as HTMLCollectionOf<HTMLElement>) {
      const on = cell.dataset.key === key;
      const way = this.sort.startsWith("-") ? "descending" : "ascending";
      cell.setAttribute("aria-sort", on ? way : "none");
    }
  }

  private sortBy(column: Column): void {
    const first = column.number ? `-${column.key}` : column.key;
    const other = column.number ? column.key : `-${column.key}`;
    this.sort = this.sort === first ? other : first;
    setParameter("sort", this.sort);
    const head = this.viewport.firstElementChild;
    if (head) this.mark(head);
    this.refresh();
  }

  private tracks(): string {
    return this.options.columns.map((c) => c.width).join(" ");
  }

  private draw(): void {
    const height = this.viewport.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.viewport.scrollTop / kRowHeight) - kMargin);
    const last = Math.min(this.order.length, first + Math.ceil(height / kRowHeight) + 2 * kMargin);
    const rows: HTMLElement[] = [];
    for (let place = first; place < last; ++place) rows.push(this.row(place));
    this.body.replaceChildren(...rows);
  }

  private drawForPaper(): void {
    const rows: HTMLElement[] = [];
    for (let place = 0; place < Math.min(kPrinted, this.order.length); ++place) {
      rows.push(this.row(place));
    }
    if (rows.length < this.order.length) {
      rows.push(h("p", {}, `the first ${rows.length} of ${this.order.length} rows`));
    }
    this.body.replaceChildren(...rows);
  }

  private row(place: number): HTMLElement {
    const row = this.order[place]!;
    const active = place === this.active;
    const element = h("div", {
      class: `row${active ? " active" : ""}`,
      role: "row",
      "aria-rowindex": place + 2,
      "aria-selected": active ? "true" : "false",
      click: () => {
        this.active = place;
        this.options.open?.(row);
      },
    });
    element.style.gridTemplateColumns = this.tracks();
    element.style.transform = `translateY(${place * kRowHeight}px)`;
    for (const column of this.options.columns) {
      const text = column.text(row);
      const cell = h("div", {
        role: "gridcell",
        class: column.number ? "number" : "",
        title: column.number ? undefined : text,
      });
      if (column.bar) {
        const bar = h("span", { class: "bar" });
        bar.style.width = `${Math.max(0, Math.min(1, column.bar(row))) * 100}%`;
        cell.append(bar);
      }
      cell.append(column.cell ? column.cell(row) : h("span", { class: "text" }, text));
      element.append(cell);
    }
    return element;
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.viewport.clientHeight / kRowHeight) - 2);
    const moves: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.order.length,
      End: this.order.length,
    };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      this.active = Math.max(0, Math.min(this.order.length - 1, this.active + move));
      const top = this.active * kRowHeight;
      if (top < this.viewport.scrollTop) this.viewport.scrollTop = top;
      const room = this.viewport.clientHeight - 2 * kRowHeight;
      if (top > this.viewport.scrollTop + room) this.viewport.scrollTop = top - room;
      this.draw();
    } else if (event.key === "Enter" && this.order[this.active] !== undefined) {
      this.options.open?.(this.order[this.active]!);
    }
  }
}

function split(text: string): string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}
