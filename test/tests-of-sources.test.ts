import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "./repository.ts";
import { findSourceTests } from "./tests-of-sources.ts";

/** Tests of the whole: they belong to no source. */
const OF_THE_WHOLE = /^test\/(journeys|faults|routers|schemas|compare)\/|^test\/[\w-]+\.test\.ts$/;
const LEAST_SHARE = 0.9;

const { sources, tests, testsOf, mirrors } = findSourceTests();

/** True if the source has types only, which run nothing. */
function isOfTypesOnly(source: string): boolean {
  const code = readFileSync(join(REPOSITORY, source), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
  return !/\b(function|class|const|let)\b|=>|export (?!type)/.test(code);
}

describe("the tests of a source are found by its path", () => {
  test("for nine of ten sources", () => {
    const tested = sources.filter((source) => !isOfTypesOnly(source));
    const missing = tested.filter((source) => testsOf(source).length === 0);
    expect(tested.length).toBeGreaterThan(500);
    expect(missing.length, missing.join("\n")).toBeLessThanOrEqual(tested.length * (1 - LEAST_SHARE));
  });

  test("and all other tests are of the whole", () => {
    const lost = tests.filter((file) => !mirrors(file) && !OF_THE_WHOLE.test(file));
    expect(lost).toEqual([
      // Programs that run beside others, in folders of their own.
      "test/rest-gateway/table/differential/differential.test.ts",
      "test/rest-gateway/table/nested-insert/random-payloads.test.ts",
    ]);
  });

  test("as CONTRIBUTING.md says", () => {
    expect(testsOf("runtime/edit-distance.ts")).toEqual(["test/runtime/edit-distance.test.ts"]);
    expect(testsOf("studio/tables/edit/undo.ts")).toContain("test/studio/tables/edit/editing.test.ts");
  });
});
