import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeDenoNamespace } from "../../../../rest-gateway/functions/thread/deno-namespace.ts";
import { useFixture } from "../../../fixture.ts";

type Member = (...values: readonly unknown[]) => unknown;
const noSocket = (): never => {
  throw new Error("there is no request");
};
const deno = makeDenoNamespace({ handler: null, onError: null, onRegistered: () => {} }, noSocket) as Record<
  string,
  Member
>;
const temporary = useFixture(async () => {
  const folder = await mkdtemp(join(tmpdir(), "functions-deno-"));
  return { folder, remove: () => rm(folder, { recursive: true }) };
});

test("files are written, appended to, moved, listed and removed", async () => {
  const file = (name: string) => join(temporary.folder, name);
  await deno.writeTextFile!(file("a.txt"), "long text");
  deno.writeTextFileSync!(file("a.txt"), "one");
  await deno.writeTextFile!(file("a.txt"), " two", { append: true });
  await deno.copyFile!(file("a.txt"), file("b.txt"));
  await deno.rename!(file("b.txt"), file("c.txt"));
  deno.mkdirSync!(file("d/e"), { recursive: true });
  const entries = await Array.fromAsync(deno.readDir!(temporary.folder) as AsyncIterable<{ name: string }>);
  expect(entries.map(({ name }) => name).sort()).toEqual(["a.txt", "c.txt", "d"]);
  expect(deno.readTextFileSync!(file("c.txt"))).toBe("one two");
  expect([deno.statSync!(file("a.txt")), await deno.lstat!(file("d"))]).toMatchObject([
    { isFile: true, size: 7 },
    { isDirectory: true },
  ]);
  deno.removeSync!(file("d"), { recursive: true });
  await expect(deno.writeTextFile!(file("none.txt"), "", { create: false })).rejects.toThrow("ENOENT");
  expect((deno.readDirSync!(temporary.folder) as readonly object[]).length).toBe(2);
});

test("all permissions are granted", async () => {
  const { query, querySync } = deno.permissions as unknown as Record<string, Member>;
  expect([await query!({ name: "net" }), querySync!({ name: "sys" })]).toMatchObject([
    { state: "granted" },
    { state: "granted" },
  ]);
});
