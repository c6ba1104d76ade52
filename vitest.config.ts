import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/cluster.ts"],
    // A real Postgres answers each test and a slow machine is no failure: this only ends what hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 300_000 } },
  },
});
