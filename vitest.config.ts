import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import CoverageReporter from "./test/coverage-reporter.ts";
import DurationsReporter from "./test/durations-reporter.ts";
import LongestFirst from "./test/longest-first.ts";
import { type TestGroup, testFiles } from "./test/test-groups.ts";

const namesFiles = process.argv.slice(2).some((word) => !word.startsWith("-") && word.includes("test/"));
const group = namesFiles ? "named" : ((process.env.TESTS || "all") as TestGroup);

export default defineConfig({
  test: {
    include: [...testFiles(group)],
    globalSetup: group === "pure" ? [] : ["test/cluster.ts"],
    setupFiles: ["test/property-runs.ts", "test/processor-time.ts"],
    sequence: { sequencer: LongestFirst },
    reporters: [
      "default",
      new DurationsReporter({ group }),
      new CoverageReporter(),
      ...(process.env.TEST_RESULTS
        ? [["json", { outputFile: process.env.TEST_RESULTS }] as ["json", { outputFile: string }]]
        : []),
    ],
    coverage: {
      provider: "v8",
      include: [
        "{accounts,catalog,cluster,config,graphql,http,jobs,live,migrate,operations,planner,plugins,postgres,realtime,rest-gateway,runtime,service}/**/*.ts",
      ],
      reporter: [],
      reportOnFailure: true,
    },
    // Half of the time of a test is waiting, for Postgres or for another process: two of them keep a core busy.
    maxWorkers: 2 * availableParallelism(),
    // No module of ours keeps anything that a file could leave to the next one, and to load them all takes longer than most
    // files. Node loads them itself, as it does for the service.
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // A real Postgres answers each test and a slow machine is no failure: this only ends what hangs.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 900_000 } },
  },
});
