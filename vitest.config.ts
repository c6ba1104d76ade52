import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/cluster.ts"],
    // A real Postgres answers each test; a slow machine is no failure.
    testTimeout: 0,
    hookTimeout: 0,
  },
});
