// SPDX-License-Identifier: Apache-2.0
//
// culprit push to a culprit serve: whole, in pieces, cut off, wrong, refused.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { cleanUp, culprit, folder, run } from "./report.mjs";

const kToken = "a token of the tests";
let server;
let base;

before(async () => {
  run("synth", "--like", "demo", "--seed", "5", "--traces", "4", "-o", "from");
  run("synth", "--like", "demo", "--seed", "6", "--traces", "1", "-o", "hub");
  server = spawn(culprit, ["serve", "hub", "--uploads", "--port", "0", "--token", kToken], {
    cwd: folder,
    env: { ...process.env, CULPRIT_SIGNATURES: join(folder, "signatures.json") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  base = await new Promise((resolve) =>
    server.stdout.once("data", (text) => resolve(String(text).trim().replace(/\/$/, ""))),
  );
});

after(() => {
  server.kill("SIGTERM");
  cleanUp();
});

function push(target, ...words) {
  const { status, stdout, stderr } = spawnSync(
    culprit,
    ["push", target, ...words, "--json", "--retries", "3"],
    {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, CULPRIT_TOKEN: kToken, HOME: folder, XDG_DATA_HOME: folder },
    },
  );
  return { status, stderr, outcome: stdout === "" ? null : JSON.parse(stdout) };
}

// The parts of a pipe between a client and the server that breaks after so many
// bytes, once.
function breakingProxy(bytes) {
  let broken = false;
  const { hostname, port } = new URL(base);
  const proxy = createServer((client) => {
    const through = connect(Number(port), hostname);
    let sent = 0;
    client.on("data", (data) => {
      sent += data.length;
      if (!broken && sent > bytes) {
        broken = true;
        through.end(data.subarray(0, 1000), () => client.destroy());
        return;
      }
      through.write(data);
    });
    through.on("data", (data) => client.write(data));
    for (const [one, other] of [
      [client, through],
      [through, client],
    ]) {
      one.on("close", () => other.destroy());
      one.on("error", () => other.destroy());
    }
  });
  return new Promise((resolve) =>
    proxy.listen(0, "127.0.0.1", () =>
      resolve({ proxy, url: `http://127.0.0.1:${proxy.address().port}`, broken: () => broken }),
    ),
  );
}

const traces = () => JSON.parse(run("corpus", "list", "hub", "--json")).traces.length;

function traceFiles() {
  const names = readdirSync(join(folder, "from/traces")).filter((n) => n.endsWith(".ctrace"));
  return names.map((name) => join(folder, "from/traces", name));
}

const api = (path, options = {}) =>
  fetch(`${base}/api/v1/${path}`, {
    ...options,
    headers: { Authorization: `Bearer ${kToken}`, ...(options.headers ?? {}) },
  });

test("traces arrive once", () => {
  const first = push(base, "from");
  assert.equal(first.status, 0, first.stderr);
  assert.equal(first.outcome.sent, 4);
  const again = push(base, "from");
  assert.equal(again.outcome.sent, 0);
  assert.equal(again.outcome.already_there, 4);
  assert.equal(traces(), 5);
});

test("a cut connection loses nothing", async () => {
  run("synth", "--like", "demo", "--seed", "9", "--traces", "1", "-o", "one");
  const { proxy, url, broken } = await breakingProxy(60000);
  // The proxy lives in this process, so the client must not block it.
  const child = spawn(culprit, ["push", url, "one", "--json"], {
    cwd: folder,
    env: { ...process.env, CULPRIT_TOKEN: kToken },
  });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  const code = await new Promise((resolve) => child.on("exit", resolve));
  proxy.close();
  assert.equal(code, 0, said);
  assert.ok(broken());
  assert.equal(JSON.parse(said).sent, 1);
  assert.equal(traces(), 6);
});

test("a piece goes on where it stopped, and nowhere else", async () => {
  run("synth", "--like", "demo", "--seed", "10", "--traces", "1", "-o", "two");
  const names = readdirSync(join(folder, "two/traces")).filter((n) => n.endsWith(".ctrace"));
  const bytes = readFileSync(join(folder, "two/traces", names[0]));
  const hash = createHash("sha256").update(bytes).digest("hex");
  const put = (from, body) =>
    api(`pushes/${hash}`, {
      method: "PUT",
      body,
      headers: {
        "X-Culprit-Offset": String(from),
        "X-Culprit-Size": String(bytes.length),
        "X-Culprit-Name": "in-pieces",
      },
    });
  assert.equal((await put(0, bytes.subarray(0, 1000))).status, 409);
  assert.deepEqual(await (await api(`pushes/${hash}`)).json(), { state: "part", bytes: 1000 });
  assert.equal((await put(500, bytes.subarray(500))).status, 409);
  assert.equal((await put(1000, bytes.subarray(1000))).status, 200);
  assert.equal((await (await api(`pushes/${hash}`)).json()).state, "whole");
  assert.equal(traces(), 7);
});

test("what is not what its hash says is dropped", async () => {
  const hash = "0".repeat(64);
  const answer = await api(`pushes/${hash}`, {
    method: "PUT",
    body: "no trace at all",
    headers: { "X-Culprit-Offset": "0", "X-Culprit-Size": "15", "X-Culprit-Name": "wrong" },
  });
  assert.equal(answer.status, 422);
  assert.deepEqual(await (await api(`pushes/${hash}`)).json(), { state: "part", bytes: 0 });
  for (const bad of ["pushes/short", `pushes/${"Z".repeat(64)}`, "pushes/..%2f..%2fetc"]) {
    assert.equal((await api(bad)).status, 400, bad);
  }
});

test("without the token nothing is taken", () => {
  const { status, stderr } = spawnSync(culprit, ["push", base, "from", "--token", "wrong"], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.equal(status, 1);
  assert.match(stderr, /401/);
  assert.match(stderr, /CULPRIT_TOKEN/);
});

test("anonymous traces arrive and are known again", () => {
  const first = push(base, "from", "--anonymize");
  assert.equal(first.status, 0, first.stderr);
  assert.equal(first.outcome.sent, 4);
  assert.equal(push(base, "from", "--anonymize").outcome.already_there, 4);
  assert.equal(statSync(join(folder, "culprit/pseudonyms.key")).mode & 0o077, 0);
  assert.ok(traceFiles().length === 4);
});
