import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

/** The packages of other systems have other sizes. */
const isMeasuredSystem = process.platform === "linux" && process.arch === "x64";

test.runIf(isMeasuredSystem)("the README says how much an installation takes, within a tenth", () => {
  const readme = readFileSync(join(REPOSITORY, "README.md"), "utf8");
  const stated = Number(/\btakes (\d+) MB/.exec(readme)?.[1]);
  const listed = execFileSync("du", ["-sm", "--exclude=.cache", join(REPOSITORY, "node_modules")], {
    encoding: "utf8",
  });
  const measured = Number.parseInt(listed, 10);
  expect(stated).toBeGreaterThan(measured * 0.9);
  expect(stated).toBeLessThan(measured * 1.1);
});
