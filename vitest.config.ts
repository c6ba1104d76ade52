import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** These start processes, or serve large schemas, and take longest. */
const SLOW = /\/test\/(server\.test|recording|faults|processes|journeys|schemas|bench|service\.test|cli)/;

/** Slow files run first, so that none of them is left alone at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { slow = [], other = [] } = Object.groupBy(await super.sort(files), ({ moduleId }) =>
      SLOW.test(moduleId) ? "slow" : "other",
    );
    return [...slow, ...other];
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/cluster.ts"],
    setupFiles: ["test/property-runs.ts"],
    sequence: { sequencer: SlowFirst },
    // Most tests wait for Postgres or for another process.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // No module of ours keeps anything that a file could leave to the next one, and to load them all takes longer than most
    // files. Node loads them itself, as it does for the service.
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // A real Postgres answers each test and a slow machine is no failure: this only ends what hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 300_000 } },
  },
});
