// SPDX-License-Identifier: Apache-2.0
//
// The report file in a browser, through every view: what it shows equals what
// its parts say, every view has an address, the keyboard reaches everything,
// and hostile names stay text.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { cleanUp, folder, openBrowser, openPage, partsOf, run, withParts } from "./report.mjs";

let browser;
let parts;
let url;

before(async () => {
  run("synth", "--like", "demo", "--seed", "3", "-o", "fleet");
  run("analyze", "fleet", "-o", "report.html");
  parts = partsOf(join(folder, "report.html"));
  url = `file://${join(folder, "report.html")}`;
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  cleanUp();
});

function view(name, body) {
  test(name, async (t) => {
    if (!browser) return t.skip("no Chromium here");
    await body();
  });
}

test("the report has the parts its overview names", () => {
  const named = parts.get("overview").parts;
  assert.ok(named.length > 5);
  for (const name of named) assert.ok(parts.has(name), name);
});

test("both breakdowns sum to the total", () => {
  const { time } = parts.get("overview");
  for (const shares of [time.own, time.behind]) {
    assert.equal(
      shares.reduce((sum, share) => sum + share.ns, 0),
      time.total_ns,
    );
  }
});

view("the overview says what was analysed and what was found", async () => {
  const overview = parts.get("overview");
  const { page, troubles } = await openPage(browser, url);
  const facts = (await page.textContent("#facts")).replace(/\u202f/g, "");
  assert.ok(facts.includes(`${overview.corpus.traces} traces`), facts);
  assert.ok(facts.includes(`${overview.corpus.instances} instances`), facts);
  const sentences = await page.locator(".findings li a").allTextContents();
  assert.deepEqual(
    sentences,
    overview.findings.map((finding) => finding.sentence),
  );
  assert.deepEqual(troubles, []);
  await page.close();
});

view("the table of behaviours sorts, filters and opens by keyboard", async () => {
  const clusters = parts.get("clusters");
  const { page, troubles } = await openPage(browser, `${url}#/clusters?sort=-cost_ns`);
  const costs = clusters.cost_ns.map((cost, row) => [cost, clusters.summary[row]]);
  costs.sort((a, b) => b[0] - a[0]);
  const first = page.locator(".rows .row").first();
  assert.equal(await first.locator("[role=gridcell]").nth(2).textContent(), costs[0][1]);
  const status = await page.textContent(".table [role=status]");
  assert.equal(status, `${clusters.id.length} rows`);
  await page.fill(".table input[type=search]", clusters.id[4]);
  assert.equal(await page.textContent(".table [role=status]"), `1 of ${clusters.id.length} rows`);
  await page.focus("[role=grid]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dl.facts");
  assert.ok(page.url().endsWith(`#/cluster/${clusters.id[4]}`), page.url());
  await page.goBack();
  await page.waitForSelector("[role=grid]");
  assert.deepEqual(troubles, []);
  await page.close();
});

view("a behaviour shows what its patterns share", async () => {
  const clusters = parts.get("clusters");
  const details = parts.get("details-0");
  const row = 1;
  const { page, troubles } = await openPage(browser, `${url}#/cluster/${clusters.id[row]}`);
  assert.equal(await page.textContent("h1"), `#${row + 1} ${clusters.summary[row]}`);
  const shared = details.clusters[row].segments.flatMap((segment) => segment.shared ?? []);
  const shown = await page.locator(".shared .frame").allTextContents();
  assert.deepEqual(
    shown,
    shared.map((frame) => details.names[frame]),
  );
  assert.deepEqual(troubles, []);
  await page.close();
});

view("a mark is exported as a store that culprit reads", async () => {
  const clusters = parts.get("clusters");
  const { page, troubles } = await openPage(browser, `${url}#/cluster/${clusters.id[0]}`);
  await page.selectOption(".mark select", "known");
  await page.fill(".mark input", "seen <before>");
  await page.locator(".mark input").blur();
  await page.click("nav a[data-view=signatures]");
  await page.waitForSelector("main button");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("main button")]);
  await download.saveAs(join(folder, "marks.json"));
  const listed = JSON.parse(run("signatures", "list", "--store", "marks.json", "--json"));
  assert.equal(listed.signatures.length, 1);
  assert.equal(listed.signatures[0].status, "known");
  assert.equal(listed.signatures[0].note, "seen <before>");
  assert.deepEqual(troubles, []);
  await page.close();
});

view("the flame graph tells the focused frame in words", async () => {
  const tree = parts.get("flame-wait");
  const { page, troubles } = await openPage(browser, `${url}#/flame?kind=wait`);
  await page.focus("canvas");
  await page.keyboard.press("ArrowDown");
  const words = await page.textContent(".flame-words");
  const roots = tree.parent.flatMap((parent, node) => (parent < 0 ? [node] : []));
  const largest = roots.reduce((a, b) => (tree.total_ns[b] > tree.total_ns[a] ? b : a));
  assert.ok(words.startsWith(`${tree.names[tree.frame[largest]]}: `), words);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.fill(".flame input[type=search]", "zzz-not-there");
  assert.ok((await page.textContent(".flame-words")).includes("0.0 %"));
  assert.deepEqual(troubles, []);
  await page.close();
});

view("a hundred thousand behaviours scroll, sort and filter", async () => {
  const rows = 100000;
  const few = parts.get("clusters");
  const clusters = {};
  for (const [key, column] of Object.entries(few)) {
    clusters[key] = Array.from({ length: rows }, (_, row) => column[row % column.length]);
  }
  clusters.id = Array.from({ length: rows }, (_, row) => `id-${row}`);
  clusters.cost_ns = Array.from({ length: rows }, (_, row) => (row * 7919) % 1000003);
  clusters.part_of = new Array(rows).fill(-1);
  const file = join(folder, "large.html");
  const overview = { ...parts.get("overview"), clusters: rows };
  writeFileSync(file, withParts(join(folder, "report.html"), { clusters, overview }));
  const { page, troubles } = await openPage(browser, `file://${file}#/clusters?sort=-cost_ns`);
  assert.equal(await page.textContent(".table [role=status]"), `${rows} rows`);
  const inSight = () => page.locator(".rows .row").count();
  assert.ok((await inSight()) < 100);
  await page.focus("[role=grid]");
  await page.keyboard.press("End");
  const last = page.locator(`.rows .row[aria-rowindex='${rows + 1}']`);
  await last.waitFor();
  assert.equal(await last.getAttribute("aria-selected"), "true");
  assert.ok((await inSight()) < 100);
  await page.fill(".table input[type=search]", "id-99999");
  assert.equal(await page.textContent(".table [role=status]"), `1 of ${rows} rows`);
  // What the reader waits for when the order changes.
  await page.fill(".table input[type=search]", "");
  const ms = await page.evaluate(() => {
    const begin = performance.now();
    document.querySelector(".head [data-key=cost_ns] button").click();
    return performance.now() - begin;
  });
  assert.ok(ms < 3000, `sorting took ${ms} ms`);
  assert.deepEqual(troubles, []);
  await page.close();
});

view("on paper a table has its first rows and the page no controls", async () => {
  const { page } = await openPage(browser, `${url}#/clusters`);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  const rows = parts.get("clusters").id.length;
  assert.equal(await page.locator(".rows .row").count(), Math.min(200, rows));
  assert.equal(await page.locator("header").isVisible(), false);
  const paper = await page.pdf({ format: "A4", landscape: true });
  assert.ok(paper.length > 20000);
  await page.emulateMedia({ media: "screen" });
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  assert.ok((await page.locator(".rows .row").count()) < 100);
  await page.close();
});

view("a flame graph tells what changed since an older recording", async () => {
  run("synth", "--like", "demo", "--seed", "3", "--bugs", "none", "-o", "before");
  run("analyze", "fleet", "--against", "before", "-o", "changed.html");
  const tree = partsOf(join(folder, "changed.html")).get("flame-wait");
  const roots = tree.parent.flatMap((parent, node) => (parent < 0 ? [node] : []));
  const sum = (column) => roots.reduce((all, node) => all + column[node], 0);
  const alone = parts.get("flame-wait");
  const allAlone = alone.parent.reduce(
    (all, parent, node) => all + (parent < 0 ? alone.total_ns[node] : 0),
    0,
  );
  assert.equal(sum(tree.total_ns), allAlone);
  assert.ok(sum(tree.before_ns) > 0);
  const changed = `file://${join(folder, "changed.html")}#/flame?kind=wait&mode=before`;
  const { page, troubles } = await openPage(browser, changed);
  await page.focus("canvas");
  await page.keyboard.press("ArrowDown");
  const words = await page.textContent(".flame-words");
  assert.match(words, / now, .* before$/);
  assert.deepEqual(troubles, []);
  await page.close();
});

view("inference stands in the page as culprit infer has it", async () => {
  run("synth", "--like", "server", "--traces", "1", "--seed", "2", "-o", "busy");
  run("synth", "--like", "server", "--traces", "1", "--seed", "3", "--bugs", "none", "-o", "calm");
  run("profile", "calm", "-o", "app.cprof");
  const file = (corpus) => {
    const { traces } = JSON.parse(run("corpus", "list", corpus, "--json"));
    return join(corpus, traces[0].file);
  };
  const flags = ["--profile", "app.cprof"];
  run("analyze", "busy", ...flags, "--normal", file("calm"), "-o", "inferred.html");
  const said = JSON.parse(
    run("infer", file("busy"), ...flags, "--against", file("calm"), "--json"),
  );
  const { page, troubles } = await openPage(
    browser,
    `file://${join(folder, "inferred.html")}#/inference`,
  );
  const names = await page.locator("table.plain tbody code").allTextContents();
  assert.ok(said.functions.length > 0);
  assert.deepEqual(
    names,
    said.functions.map((row) => row.function),
  );
  assert.deepEqual(troubles, []);
  await page.close();
});

view("kinds of work are listed with their thresholds, slow ones first", async () => {
  const type = (name, slow) => ({
    name,
    unit: "handler",
    samples: 1000,
    p50_ns: 2000,
    p99_ns: 9000,
    max_ns: 90000,
    threshold_ns: 1500000,
    slow,
    longest_ns: slow * 1e6,
    histogram: [0, 3, 900, 90, 7],
  });
  const units = {
    program: "server",
    floor_ns: 1000000,
    types: [type("get", 0), type("<b>set", 7), type("del", 2)],
  };
  const overview = parts.get("overview");
  const file = join(folder, "units.html");
  const named = { ...overview, parts: [...overview.parts, "units"] };
  writeFileSync(file, withParts(join(folder, "report.html"), { units, overview: named }));
  const { page, troubles } = await openPage(browser, `file://${file}#/units`);
  const cells = await page.locator(".rows .row [role=gridcell]:first-child").allTextContents();
  assert.deepEqual(cells, ["<b>set", "del", "get"]);
  const first = page.locator(".rows .row").first();
  assert.ok((await first.textContent()).includes("1.50 ms"));
  assert.equal(await first.locator("svg line.mark").count(), 1);
  assert.deepEqual(troubles, []);
  await page.close();
});

view("wait chains open by keyboard", async () => {
  const { page, troubles } = await openPage(browser, `${url}#/chains`);
  const closed = page.locator("[role=treeitem][aria-expanded=false]").first();
  await closed.focus();
  await page.keyboard.press("ArrowRight");
  assert.ok((await page.locator("[role=treeitem][aria-level='2']").count()) > 0);
  assert.deepEqual(troubles, []);
  await page.close();
});

view("an address that names nothing says so", async () => {
  const { page } = await openPage(browser, `${url}#/cluster/nothing`);
  assert.ok((await page.textContent("[role=alert]")).includes("nothing"));
  await page.close();
});

view("light and dark can be chosen", async () => {
  const { page, troubles } = await openPage(browser, url);
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await back();
  await page.click("button.theme");
  assert.notEqual(await back(), before);
  assert.deepEqual(troubles, []);
  await page.close();
});

view("names that are markup stay text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  writeFileSync(
    join(folder, "evil.folded"),
    `app!main;app!<script>alert(1)</script>;app!${evil} 900\napp!main;app!</script><b> 100\n`,
  );
  run("import", "evil.folded", "-o", "evil");
  run("analyze", "evil", "-o", "evil.html");
  const hostile = `file://${join(folder, "evil.html")}`;
  for (const where of ["", "#/clusters", "#/flame?kind=run", "#/chains"]) {
    const { page, troubles } = await openPage(browser, hostile + where);
    assert.equal(await page.locator("main img, main b:has(script), main script").count(), 0);
    assert.deepEqual(troubles, []);
    await page.close();
  }
});

view("a corpus with nothing in it has a page that says so", async () => {
  writeFileSync(join(folder, "empty.folded"), "app!main;app!work 1\n");
  run("import", "empty.folded", "-o", "none");
  run("corpus", "rm", "none", "empty");
  run("analyze", "none", "-o", "none.html");
  const { page, troubles } = await openPage(browser, `file://${join(folder, "none.html")}`);
  assert.ok((await page.textContent("main")).includes("no instances"));
  assert.deepEqual(troubles, []);
  await page.close();
});
