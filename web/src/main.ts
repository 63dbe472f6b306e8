// SPDX-License-Identifier: Apache-2.0
//
// The page: a bar of views, and the view the address names.

import "./style.css";
import { chainsView } from "./chains";
import { clustersView, clusterView } from "./clusters";
import { contrastView } from "./contrast";
import { forgetAll, isServed, overview, serverStatus } from "./data";
import { h, link, type Shown } from "./dom";
import { flameView } from "./flame";
import { impactView } from "./impact";
import { inferenceView } from "./inference";
import { instanceView } from "./lanes";
import { overviewView } from "./overview";
import { current, to, type Route } from "./route";
import { signaturesView } from "./signatures";
import { unitsView } from "./units";
import { restoreTheme, toggleTheme } from "./theme";

interface View {
  name: string;
  title: string;
  needs?: (part: string) => boolean; // shown only if the report has such a part
  draw: (route: Route) => Promise<Shown>;
}

const kViews: View[] = [
  { name: "", title: "Overview", draw: () => overviewView() },
  { name: "clusters", title: "Behaviours", draw: (r) => clustersView(r.parameters) },
  { name: "flame", title: "Flame graph", draw: (r) => flameView(r.parameters) },
  {
    name: "chains",
    title: "Wait chains",
    needs: (p) => p.startsWith("chains-"),
    draw: (r) => chainsView(r.target),
  },
  {
    name: "contrast",
    title: "Contrast",
    needs: (p) => p.startsWith("contrast-"),
    draw: (r) => contrastView(r.target),
  },
  { name: "impact", title: "Impact", needs: (p) => p === "impact", draw: () => impactView() },
  {
    name: "instance",
    title: "Instances",
    needs: (p) => p === "instances",
    draw: (r) => instanceView(r.target),
  },
  { name: "units", title: "Unit types", needs: (p) => p === "units", draw: () => unitsView() },
  {
    name: "inference",
    title: "Inference",
    needs: (p) => p === "inference",
    draw: () => inferenceView(),
  },
  { name: "signatures", title: "Signatures", draw: () => signaturesView() },
];
const kHidden: View[] = [
  { name: "cluster", title: "Behaviour", draw: (r) => clusterView(r.target) },
];

const main = h("main", { id: "main", tabindex: -1 });
const bar = h("nav", { "aria-label": "views" });
let drawn = 0;

async function draw(): Promise<void> {
  const route = current();
  const view = [...kViews, ...kHidden].find((v) => v.name === route.view);
  for (const item of bar.querySelectorAll("a")) {
    const on = item.dataset.view === (route.view === "cluster" ? "clusters" : route.view);
    if (on) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  const turn = ++drawn;
  const late = window.setTimeout(
    () => main.replaceChildren(h("p", { class: "quiet" }, "loading …")),
    150,
  );
  let nodes: Shown;
  try {
    if (!view) throw new Error(`there is no view "${route.view}"`);
    nodes = await view.draw(route);
    document.title = `${view.title} – culprit`;
  } catch (error) {
    nodes = [
      h("h1", {}, "This cannot be shown"),
      h("p", { role: "alert" }, error instanceof Error ? error.message : String(error)),
      h("p", {}, link(to(""), "back to the overview")),
    ];
  }
  window.clearTimeout(late);
  // The reader may have gone on while a part was loading.
  if (turn !== drawn) return;
  main.replaceChildren(...nodes.filter((n) => n instanceof Node));
  window.scrollTo(0, 0);
}

// Of a served page: says when the corpus was analysed again, and shows it when asked.
async function watch(): Promise<void> {
  const line = h("span", { class: "quiet", role: "status" });
  bar.after(line);
  let seen = 0;
  for (;;) {
    try {
      const status = await serverStatus();
      if (seen === 0) seen = status.analysis;
      if (status.analysis > seen) {
        const again = h(
          "button",
          {
            type: "button",
            click: () => {
              seen = status.analysis;
              forgetAll();
              line.replaceChildren();
              void draw();
            },
          },
          "show the new analysis",
        );
        line.replaceChildren(again);
      } else if (status.state === "analysing" && status.total) {
        line.textContent = `analysing ${Math.floor((100 * (status.done ?? 0)) / status.total)} %`;
      } else {
        line.textContent = status.state === "ready" ? "" : status.state;
      }
    } catch {
      line.textContent = "the server does not answer";
    }
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
}

async function start(): Promise<void> {
  restoreTheme();
  document.body.prepend(
    h(
      "a",
      {
        class: "skip",
        href: "#main",
        click: (e) => {
          e.preventDefault();
          main.focus();
        },
      },
      "to the content",
    ),
    h(
      "header",
      {},
      h("span", { class: "brand" }, "culprit"),
      bar,
      h(
        "button",
        {
          type: "button",
          class: "theme",
          "aria-label": "light or dark",
          click: () => {
            toggleTheme();
            void draw();
          },
        },
        "◐",
      ),
    ),
    main,
  );
  if (isServed()) void watch();
  let parts: string[] = [];
  try {
    parts = (await overview()).parts;
  } catch {
    // The view says what is wrong.
  }
  for (const view of kViews) {
    if (view.needs && !parts.some(view.needs)) continue;
    const item = link(to(view.name), view.title);
    item.dataset.view = view.name;
    bar.append(item);
  }
  window.addEventListener("hashchange", () => void draw());
  await draw();
  document.documentElement.dataset.ready = "yes";
}

void start();
