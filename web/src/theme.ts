// SPDX-License-Identifier: Apache-2.0
//
// Light or dark: as the system says, or as chosen and remembered.

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function restoreTheme(): void {
  try {
    const chosen = localStorage.getItem("culprit-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch {
    // A page from disk may have no storage.
  }
}

export function toggleTheme(): void {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("culprit-theme", next);
  } catch {
    // Not remembered, then.
  }
}
