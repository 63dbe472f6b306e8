// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the page share: a corpus, its report, a browser. The program
// is the one CULPRIT names.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const kBrowsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const culprit = process.env.CULPRIT ?? "culprit";
export const folder = mkdtempSync(join(tmpdir(), "culprit-page-"));

export function cleanUp() {
  rmSync(folder, { recursive: true, force: true });
}

export function run(...words) {
  return execFileSync(culprit, words, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, CULPRIT_SIGNATURES: join(folder, "signatures.json") },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

// The parts inside a report file, as the page reads them.
export function partsOf(file) {
  const parts = new Map();
  const block = /<script type="application\/gzip" data-part="([^"]+)">([^<]+)<\/script>/g;
  for (const [, name, text] of readFileSync(file, "utf8").matchAll(block)) {
    parts.set(name, JSON.parse(gunzipSync(Buffer.from(text, "base64")).toString("utf8")));
  }
  return parts;
}

// The text of a report file with some of its parts replaced, or new ones in it.
export function withParts(file, replaced) {
  let text = readFileSync(file, "utf8");
  const block = '<script type="application/gzip" data-part=';
  for (const [name, part] of Object.entries(replaced)) {
    if (!text.includes(`data-part="${name}">`)) {
      text = text.replace(block, `${block}"${name}">-</script>${block}`);
    }
    const begin = text.indexOf(`data-part="${name}">`) + `data-part="${name}">`.length;
    const end = text.indexOf("<", begin);
    const packed = gzipSync(JSON.stringify(part)).toString("base64");
    text = text.slice(0, begin) + packed + text.slice(end);
  }
  return text;
}

export async function openBrowser() {
  const executablePath = kBrowsers.find((path) => existsSync(path));
  if (!executablePath) return null;
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

// A page that fails the test when it throws, logs an error or asks for anything
// that is not in `allowed`.
export async function openPage(browser, url, allowed = () => false) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") troubles.push(message.text());
  });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== url.split("#")[0] && !allowed(request.url())) {
      troubles.push(`asked for ${request.url()}`);
    }
  });
  await page.goto(url);
  await page.waitForSelector("html[data-ready]");
  return { page, troubles };
}
