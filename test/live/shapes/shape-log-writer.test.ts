import { execFile } from "node:child_process";
import { mkdir, mkdtempDisposable, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ShapeLogWriter } from "../../../live/shapes/shape-log-writer.ts";

const MODULE = join(import.meta.dirname, "../../../live/shapes/shape-log-writer.ts");

const openFolder = () => mkdtempDisposable(join(tmpdir(), "content-service-writer-"));

test("what is written before the end is in the files, and what comes later too", async () => {
  await using folder = await openFolder();
  const writer = new ShapeLogWriter();
  const write = (name: string, text: string, isNew: boolean) =>
    writer.write({ path: join(folder.path, "logs", name), text, isNew });
  const first = [write("a", "1", true), write("b", "1", true)];
  await writer.close();
  expect(await Promise.all(first)).toEqual([null, null]);
  const later = await Promise.all([write("a", "é2", false), write("b", "2", true)]);
  expect(later).toEqual([null, null]);
  const texts = ["a", "b"].map((name) => readFile(join(folder.path, "logs", name), "utf8"));
  expect(await Promise.all(texts)).toEqual(["1é2", "2"]);
  expect((await stat(join(folder.path, "logs/a"))).mode & 0o777).toBe(0o600);
  await writer.close();
});

test("each write tells why it failed, and the others are done", async () => {
  await using folder = await openFolder();
  const writer = new ShapeLogWriter();
  await mkdir(join(folder.path, "occupied"));
  const results = await Promise.all(
    [
      { name: "occupied", isNew: true },
      { name: "deleted", isNew: false },
      { name: "whole", isNew: true },
    ].map(({ name, isNew }) => writer.write({ path: join(folder.path, name), text: "x", isNew })),
  );
  expect(results.map((failure) => failure?.code)).toEqual(["EISDIR", "ENOENT", undefined]);
  await writer.close();
});

/** Returns the output of a process that writes to a file and then ends by itself. */
async function runWriter(folder: string, before: string): Promise<string> {
  const program = `${before}
    const { ShapeLogWriter } = await import(${JSON.stringify(MODULE)});
    const writer = new ShapeLogWriter();
    const path = ${JSON.stringify(join(folder, "log"))};
    for (const isNew of [true, false]) console.log(JSON.stringify(await writer.write({ path, text: "x", isNew })));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  return stdout;
}

test("a process ends without closing it, when all is written", async () => {
  await using folder = await openFolder();
  expect(await runWriter(folder.path, "")).toBe("null\nnull\n");
  expect(await readFile(join(folder.path, "log"), "utf8")).toBe("xx");
  await rm(join(folder.path, "log"));
});

test.each([
  ["cannot be made", 'throw new Error("no thread")', "no thread"],
  ["fails at once", "super('throw new Error(\"it fails\")', { ...options, eval: true })", "it fails"],
])("with a thread that %s, each write says so", async (_what, body, message) => {
  await using folder = await openFolder();
  const before = `
    import threads from "node:worker_threads";
    import { syncBuiltinESMExports } from "node:module";
    const { Worker } = threads;
    threads.Worker = class extends Worker { constructor(program, options) { ${body}; } };
    syncBuiltinESMExports();`;
  expect(await runWriter(folder.path, before)).toBe(`${JSON.stringify({ message })}\n`.repeat(2));
});
