import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    exclude: ["tests/package/projects/**"],
    // The package is loaded as Node loads it, not transformed: it is what users get.
    server: { deps: { external: [/\/pkg\//] } },
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Files that start processes and measure memory disturb each other less one at a time.
    fileParallelism: false
  }
})
