// SPDX-License-Identifier: Apache-2.0
//
// culprit serve from outside: the page, the API, uploads, marks, and everything
// a stranger may try.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { cleanUp, culprit, folder, openBrowser, openPage, run } from "./report.mjs";

let server;
let base;
let port;
let browser;

function start(...words) {
  return new Promise((resolve, reject) => {
    const child = spawn(culprit, ["serve", ...words, "--port", "0"], {
      cwd: folder,
      env: { ...process.env, CULPRIT_SIGNATURES: join(folder, "signatures.json") },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    child.stdout.once("data", (text) => resolve({ child, base: String(text).trim() }));
    child.once("exit", (code) => reject(new Error(`serve ended with ${code}: ${said}`)));
  });
}

async function settled() {
  for (let i = 0; i < 300; ++i) {
    const status = await (await fetch(`${base}api/v1/status`)).json();
    if (status.state === "ready" && status.queued === 0) return status;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the analysis did not end");
}

// A request as its bytes, for what no client would send.
function raw(bytes, wait = 2000) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    let answer = "";
    socket.on("data", (text) => (answer += text));
    socket.on("close", () => resolve(answer));
    socket.on("error", () => resolve(answer));
    setTimeout(() => socket.destroy(), wait);
  });
}

before(async () => {
  run("synth", "--like", "demo", "--seed", "4", "-o", "fleet");
  ({ child: server, base } = await start("fleet", "--uploads", "--max-upload", "20MB"));
  port = Number(new URL(base).port);
  await settled();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  assert.equal(await ended, 0);
  cleanUp();
});

test("the page reads its parts from the server", async (t) => {
  if (!browser) return t.skip("no Chromium here");
  const { page, troubles } = await openPage(browser, base, (url) => url.startsWith(base));
  const overview = await (await fetch(`${base}api/v1/parts/overview`)).json();
  const sentences = await page.locator(".findings li a").allTextContents();
  assert.deepEqual(
    sentences,
    overview.findings.map((finding) => finding.sentence),
  );
  assert.deepEqual(
    troubles.filter((text) => !text.includes("favicon")),
    [],
  );
  await page.close();
});

test("a part has an ETag and is not sent twice", async () => {
  const first = await fetch(`${base}api/v1/parts/clusters`);
  const tag = first.headers.get("etag");
  const again = await fetch(`${base}api/v1/parts/clusters`, { headers: { "If-None-Match": tag } });
  assert.equal(again.status, 304);
});

test("answers carry safe headers", async () => {
  const { headers } = await fetch(base);
  assert.ok(headers.get("content-security-policy").includes("default-src 'none'"));
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("x-frame-options"), "DENY");
});

test("no path leads out of the corpus", async () => {
  for (const path of [
    "/../../etc/passwd",
    "/api/v1/parts/../../../etc/passwd",
    "/api/v1/parts/..%2f..%2fcatalog.sqlite",
    "/api/v1/parts/%2e%2e/%2e%2e/etc/passwd",
    "/catalog.sqlite",
    "//etc/passwd",
  ]) {
    const answer = await raw(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    assert.ok(!answer.includes("root:") && !answer.includes("SQLite format"), path);
    assert.match(answer, /^HTTP\/1\.1 4/, path);
  }
});

test("malformed requests are refused and the server lives", async () => {
  for (const bytes of [
    "\r\n\r\n",
    "GET\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"y".repeat(200000)}\r\n\r\n`,
    "POST /api/v1/signatures HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    "PUT /api/v1/traces/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  ]) {
    await raw(bytes, 500);
  }
  assert.equal((await fetch(`${base}api/v1/status`)).status, 200);
});

test("another site's name is refused", async () => {
  const answer = await raw(
    "GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
  );
  assert.match(answer, /^HTTP\/1\.1 403/);
});

test("a mark is stored as a signature", async () => {
  const clusters = await (await fetch(`${base}api/v1/parts/clusters`)).json();
  const post = (body) =>
    fetch(`${base}api/v1/signatures`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
    });
  assert.equal((await post("{")).status, 400);
  assert.equal((await post('{"cluster":"nope","status":"known"}')).status, 404);
  const mark = { cluster: clusters.id[0], status: "known", name: "first", note: "n" };
  assert.equal((await post(JSON.stringify(mark))).status, 200);
  assert.equal((await post("x".repeat(3 << 20))).status, 413);
  const store = JSON.parse(readFileSync(join(folder, "signatures.json"), "utf8"));
  assert.equal(store.signatures.find((s) => s.name === "first").status, "known");
  await settled();
});

test("an upload joins the corpus and is analysed", async () => {
  const earlier = await settled();
  const trace = "app!main;app!work 1000\napp!main;app!idle 10\n";
  const put = (name, body) => fetch(`${base}api/v1/traces/${name}`, { method: "PUT", body });
  assert.equal((await put("up-1", trace)).status, 202);
  assert.equal((await put("up%2f1", trace)).status, 400);
  assert.equal((await put("up-2", "")).status, 400);
  assert.equal((await put("up-3", "x".repeat(21e6))).status, 413);
  for (let i = 0; i < 100; ++i) {
    const status = await settled();
    if (status.analysis > earlier.analysis) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const overview = await (await fetch(`${base}api/v1/parts/overview`)).json();
  assert.ok(run("corpus", "list", "fleet").includes("up-1"));
  assert.equal(overview.corpus.traces, 41);
});

test("what is no trace is named, not added", async () => {
  const body = Buffer.from([0, 1, 2, 3, 255, 254]);
  await fetch(`${base}api/v1/traces/junk`, { method: "PUT", body });
  let status;
  for (let i = 0; i < 100; ++i) {
    status = await settled();
    if (status.problems.some((problem) => problem.startsWith("junk"))) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(
    status.problems.some((problem) => problem.startsWith("junk")),
    status.problems.join(),
  );
});

test("an upload that is cut off leaves nothing", async () => {
  await raw(
    "PUT /api/v1/traces/cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc",
    300,
  );
  await settled();
  assert.ok(!run("corpus", "list", "fleet").includes("cut"));
});

test("200 readers at once are answered", async () => {
  const one = () =>
    new Promise((resolve, reject) => {
      const ask = request(`${base}api/v1/parts/clusters`, { agent: false }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode));
      });
      ask.on("error", reject);
      ask.end();
    });
  const codes = await Promise.all(Array.from({ length: 200 }, one));
  assert.ok(codes.every((code) => code === 200));
});

test("an address others can reach needs a token", async () => {
  await assert.rejects(start("fleet", "--address", "0.0.0.0"), /token/);
  const guarded = await start("fleet", "--token", "secret");
  try {
    assert.equal((await fetch(`${guarded.base}api/v1/status`)).status, 401);
    const wrong = { headers: { Authorization: "Bearer secreT" } };
    assert.equal((await fetch(`${guarded.base}api/v1/status`, wrong)).status, 401);
    const right = { headers: { Authorization: "Bearer secret" } };
    assert.equal((await fetch(`${guarded.base}api/v1/status`, right)).status, 200);
  } finally {
    guarded.child.kill("SIGTERM");
  }
});
