import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

const run = promisify(execFile);
const PATCHES = join(REPOSITORY, "docs/upstream");

test("the patches for other projects apply to the installed versions", async () => {
  const folder = await mkdtemp(join(tmpdir(), "upstream-"));
  try {
    for (const name of ["graphile-build", "graphile-build-pg"]) {
      await cp(join(REPOSITORY, "node_modules", name, "dist"), join(folder, name, "dist"), { recursive: true });
    }
    const patches = await readdir(PATCHES);
    expect(patches).not.toEqual([]);
    for (const name of patches) {
      await run("git", ["apply", join(PATCHES, name)], { cwd: folder });
      const { stdout } = await run("git", ["apply", "--numstat", "--reverse", join(PATCHES, name)], { cwd: folder });
      const changed = stdout
        .trim()
        .split("\n")
        .map((line) => line.split("\t")[2]!);
      for (const file of changed) await run(process.execPath, ["--check", join(folder, file)]);
      expect(changed.length).toBeGreaterThan(0);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
