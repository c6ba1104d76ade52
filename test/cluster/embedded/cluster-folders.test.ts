import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { acquireFile, findFileOwner, releaseFile } from "../../../cluster/embedded/cluster-folders.ts";

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "claim-"));
  file = join(folder, "service.pid");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("a claim is held by its process until it is released, and leaves no other file", async () => {
  expect(await findFileOwner(file)).toBeNull();
  expect(await acquireFile(file)).toBeNull();
  expect(await findFileOwner(file)).toBe(process.pid);
  expect(await readdir(folder)).toEqual(["service.pid"]);
  await releaseFile(file);
  expect(await readdir(folder)).toEqual([]);
});

test("exactly one of many processes takes over the claim of a dead owner, and the others get its id", async () => {
  await writeFile(file, `${process.pid}\n1\n`);
  const code = `const { acquireFile } = await import(process.argv[1]);
    process.stdin.once("data", async () => console.log(await acquireFile(process.argv[2])));
    console.log("set");`;
  const module = join(import.meta.dirname, "../../../cluster/embedded/cluster-folders.ts");
  const rivals = Array.from({ length: 6 }, () =>
    spawn(process.execPath, ["--input-type=module", "-e", code, module, file], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  try {
    await Promise.all(rivals.map(({ stdout }) => once(stdout, "data")));
    const answers = rivals.map(async ({ stdout }) => String((await once(stdout, "data"))[0]).trim());
    for (const { stdin } of rivals) stdin.write("go\n");
    const result = await Promise.all(answers);
    const winner = rivals[result.indexOf("null")]!.pid;
    expect(result.toSorted()).toEqual(["null", ...Array(5).fill(String(winner))].toSorted());
    expect(await readdir(folder)).toEqual(["service.pid"]);
  } finally {
    for (const rival of rivals) rival.kill("SIGKILL");
  }
});
