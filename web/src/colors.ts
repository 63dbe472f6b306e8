// SPDX-License-Identifier: Apache-2.0
//
// One colour a kind of time, told apart by people who see fewer colours (Okabe
// and Ito's palette). A colour never stands alone: there is always a word too.

export const kKindColors: Record<string, string> = {
  running: "#e69f00",
  "not sampled": "#f0c96b",
  ready: "#f0e442",
  preempted: "#f0e442",
  lock: "#0072b2",
  ipc: "#56b4e9",
  disk: "#009e73",
  hardware: "#009e73",
  fault: "#66c2a5",
  net: "#cc79a7",
  child: "#b28ab5",
  timer: "#999999",
  memory: "#d55e00",
  signal: "#8c8c8c",
  request: "#bbbbbb",
  wait: "#56b4e9",
  other: "#7fa8c9",
  waiting: "#56b4e9",
  unattributed: "#c8c8c8",
};

export function kindColor(key: string): string {
  return kKindColors[key] ?? "#a0a0a0";
}

// Stable shades by module, so that one module looks the same in every graph.
export function moduleColor(frame: string, dark: boolean): string {
  const module = frame.split("!", 1)[0] ?? frame;
  let hash = 2166136261;
  for (let i = 0; i < module.length; ++i) hash = Math.imul(hash ^ module.charCodeAt(i), 16777619);
  const hue = (((hash >>> 0) % 360) + 360) % 360;
  return dark ? `hsl(${hue} 35% 38%)` : `hsl(${hue} 55% 74%)`;
}

// From blue (less in slow ones) over grey to orange (more).
export function differenceColor(change: number, dark: boolean): string {
  const strength = Math.min(1, Math.abs(change));
  const light = dark ? 34 + 12 * strength : 88 - 30 * strength;
  if (strength < 0.02) return dark ? "hsl(0 0% 36%)" : "hsl(0 0% 88%)";
  return change > 0
    ? `hsl(30 ${30 + 60 * strength}% ${light}%)`
    : `hsl(205 ${30 + 60 * strength}% ${light}%)`;
}
