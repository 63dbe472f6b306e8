// SPDX-License-Identifier: Apache-2.0
//
// Where parts come from: inside the page (a report file, each part compressed in
// a block of its own and read only when asked for) or from the server that gave
// the page. A part is loaded once.

import type { Overview } from "./model";

const loaded = new Map<string, Promise<unknown>>();

export function part<T>(name: string): Promise<T> {
  let promise = loaded.get(name);
  if (!promise) {
    promise = load(name);
    promise.catch(() => loaded.delete(name));
    loaded.set(name, promise);
  }
  return promise as Promise<T>;
}

export function overview(): Promise<Overview> {
  return part<Overview>("overview");
}

export function isServed(): boolean {
  return document.querySelector('meta[name="culprit-source"][content="server"]') !== null;
}

// After the server has said that the corpus was analysed again.
export function forgetAll(): void {
  loaded.clear();
}

async function load(name: string): Promise<unknown> {
  const block = document.querySelector(`script[data-part="${CSS.escape(name)}"]`);
  if (block) return inflate(block.textContent ?? "");
  if (!isServed()) throw new Error(`this report has no part "${name}"`);
  return (await ask(`api/v1/parts/${encodeURIComponent(name)}`)).json();
}

// Waits while the first analysis runs; asks the reader for the token once.
async function ask(path: string): Promise<Response> {
  for (;;) {
    const response = await fetch(path, { headers: token() });
    if (response.ok) return response;
    if (response.status === 401) {
      const given = window.prompt("This server asks for a token");
      if (!given) throw new Error("the server asks for a token");
      sessionStorage.setItem("culprit-token", given);
    } else if (response.status === 503) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
    } else {
      throw new Error(`the server answers ${response.status}: ${await response.text()}`);
    }
  }
}

export interface ServerStatus {
  state: string;
  analysis: number;
  done?: number;
  total?: number;
}

export async function serverStatus(): Promise<ServerStatus> {
  return (await ask("api/v1/status")).json() as Promise<ServerStatus>;
}

export function token(): Record<string, string> {
  const value = sessionStorage.getItem("culprit-token");
  return value ? { Authorization: `Bearer ${value}` } : {};
}

async function inflate(base64: string): Promise<unknown> {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
