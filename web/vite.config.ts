// SPDX-License-Identifier: Apache-2.0
// One script and one style sheet with fixed names: culprit puts them into the
// page it writes, so nothing is loaded from anywhere.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    target: "es2022",
    cssCodeSplit: false,
    lib: {
      entry: "src/main.ts",
      formats: ["iife"],
      name: "culpritPage",
      fileName: () => "page.js",
    },
    rollupOptions: { output: { assetFileNames: "page[extname]" } },
  },
});
