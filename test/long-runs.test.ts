import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { longRuns, PARTS } from "./long-runs.ts";
import { REPOSITORY } from "./repository.ts";

test("each part is a command of this repository, and no run of another one is recorded", async () => {
  const { scripts } = JSON.parse(await readFile(join(REPOSITORY, "package.json"), "utf8"));
  for (const command of Object.values(PARTS))
    expect(command.replace(/npm run (\S+)/, (_, name) => (name in scripts ? "known" : name))).toMatch(
      /^([A-Z_]+=\S+ )?(known|\.ci\/majors)\b/,
    );
  expect(Object.keys(PARTS)).toEqual(expect.arrayContaining(Object.keys(longRuns())));
});
