// SPDX-License-Identifier: Apache-2.0
//
// A histogram of durations in the height of a line of text; each bar is half a
// doubling.

import { s } from "./dom";

// `mark`: the bar in which a threshold lies.
export function sparkline(histogram: number[], mark = -1): Node {
  const most = Math.max(1, ...histogram);
  const first = Math.max(
    0,
    histogram.findIndex((n) => n > 0),
  );
  const last = Math.max(histogram.length, mark + 1);
  const bars = Array.from({ length: last - first }, (_, i) => histogram[first + i] ?? 0);
  const svg = s("svg", {
    viewBox: `0 0 ${bars.length * 4} 20`,
    class: "spark",
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": "durations, each bar half a doubling",
  });
  bars.forEach((n, i) => {
    const height = n === 0 ? 0 : Math.max(1, (20 * Math.log(1 + n)) / Math.log(1 + most));
    svg.append(s("rect", { x: i * 4, y: 20 - height, width: 3, height }));
  });
  if (mark >= first) {
    const x = (mark - first) * 4 + 1.5;
    svg.append(s("line", { x1: x, x2: x, y1: 0, y2: 20, class: "mark" }));
  }
  return svg;
}
