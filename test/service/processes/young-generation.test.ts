import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const MODULE = join(import.meta.dirname, "../../../service/processes/process-lifecycle.ts");

test("this version of V8 supports the flag", async () => {
  const program = `import { keepYoungGenerationMemory } from ${JSON.stringify(MODULE)}; keepYoungGenerationMemory();`;
  const result = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  expect(result).toEqual({ stdout: "", stderr: "" });
});
