import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "../../repository.ts";

/** Evaluates code in a process that begins like the service and its commands. */
async function evaluate(code: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "./service/cli/compile-cache.js", "--input-type=module", "--eval", code],
    { cwd: REPOSITORY, env: { PATH: process.env.PATH } },
  );
  return JSON.parse(stdout);
}

describe("modules of this package", () => {
  test("are loaded once, by whichever name", async () => {
    const code = `const modules = [await import("#runtime"), await import("./runtime/index.ts"), await import(new URL("runtime/index.ts", "file://" + process.cwd() + "/"))];
      console.log(new Set(modules).size)`;
    expect(await evaluate(code)).toBe(1);
  });

  test("that do not exist are errors which name the file", async () => {
    const code = `console.log(JSON.stringify(await import("./runtime/nothing.ts").catch((error) => [error.code, error.message.includes("runtime/nothing.ts")])))`;
    expect(await evaluate(code)).toEqual(["ENOENT", true]);
  });
});

test("data and other packages are found as Node finds them", async () => {
  const code = `const { default: description } = await import("./package.json", { with: { type: "json" } });
    const { Pool } = await import("pg");
    console.log(JSON.stringify([description.name, typeof Pool]))`;
  expect(await evaluate(code)).toEqual(["content-service", "function"]);
});
