import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const MODULE = join(import.meta.dirname, "../../../service/processes/young-generation.ts");
const COMPILE_CACHE = join(import.meta.dirname, "../../../service/cli/compile-cache.js");

/** Prints the size of the young generation after allocations that survive: before and after it may grow. */
const PROGRAM = `
  import { getHeapSpaceStatistics } from "node:v8";
  import { growYoungGeneration } from ${JSON.stringify(MODULE)};
  const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;
  const survivors = [];
  const allocate = () => { for (let count = 0; count < 500_000; count++) survivors.push({ count, text: "row " + count }); };
  allocate();
  const fixed = size();
  growYoungGeneration();
  allocate();
  console.log(JSON.stringify({ fixed, grown: size() }));`;

test("the young generation grows only once the service has started", async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    "--import",
    COMPILE_CACHE,
    "--input-type=module",
    "--eval",
    PROGRAM,
  ]);
  expect(stderr).toBe("");
  const { fixed, grown } = JSON.parse(stdout);
  // V8 may have let it grow a little before the flags were set.
  expect(grown).toBeGreaterThan(4 * fixed);
});
