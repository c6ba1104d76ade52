import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/cluster.ts"],
    // Half of the time they wait for Postgres, so one more than there are cores to spare is busy too.
    maxWorkers: 2,
    // A real Postgres answers each test and a slow machine is no failure: this only ends what hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 300_000 } },
  },
});
