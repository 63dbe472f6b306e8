// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read them; the same words and digits as the terminal's.

const kUnits: [number, string][] = [
  [3600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
];

export function duration(ns: number): string {
  const size = Math.abs(ns);
  for (const [unit, name] of kUnits) {
    if (size >= unit) return `${digits(ns / unit)} ${name}`;
  }
  return `${ns} ns`;
}

// Three digits that matter: 1.23, 12.3, 123.
function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

export function share(part: number, whole: number): string {
  return whole === 0 ? "0.0 %" : `${((100 * part) / whole).toFixed(1)} %`;
}

export function count(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

export function ratio(value: number): string {
  return value >= 1e6 ? ">10⁶" : `${digits(value)}×`;
}

export const kLabels: Record<string, string> = {
  running: "running",
  ready: "ready, not running",
  lock: "waiting for a lock",
  disk: "waiting for the disk",
  fault: "waiting for a page fault",
  net: "waiting for the network",
  ipc: "waiting for another process",
  request: "waiting to be asked",
  timer: "waiting for a timer",
  child: "waiting for a child",
  memory: "waiting for memory",
  signal: "waiting for a signal",
  other: "waiting",
  waiting: "waiting",
  hardware: "hardware",
  unattributed: "unattributed",
};

export function label(key: string): string {
  return kLabels[key] ?? key;
}
