import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const PROGRAM = join(import.meta.dirname, "../../bench/bench.ts");
const bench = (...words: string[]) => promisify(execFile)(process.execPath, [PROGRAM, ...words]);
const refused = (...words: string[]) => bench(...words).catch((error) => error);

describe("npm run bench", () => {
  test.each(["--help", "-h"])("prints its usage with %s, and measures nothing", async (word) => {
    const { stdout, stderr } = await bench(word, "rest");
    expect(stdout).toMatch(/^npm run bench -- \[NAME…\]/);
    expect(stdout).not.toContain("rest: ");
    expect(stderr).toBe("");
  });

  test.each([
    [["--round", "1"], "--round"],
    [["--rounds"], "--rounds"],
    [["rest", "nothing"], "nothing"],
    [["rest", "--seconds", "0.2"], "--seconds"],
    [["hostile", "--only", "kindness"], "kindness"],
  ])("exits with 2 for %j and prints the usage error, without a stack trace", async (words, unread) => {
    const { code, stdout, stderr } = await refused(...words);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    const [reason, ...usage] = stderr.split("\n");
    expect(reason).toContain(unread);
    expect(usage[0]).toMatch(/^npm run bench -- \[NAME…\]/);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});
