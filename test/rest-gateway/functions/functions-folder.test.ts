import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readFunctions } from "../../../rest-gateway/functions/functions-folder.ts";
import { useFolder } from "../../fixture.ts";

const folder = useFolder("functions-");

test("a configuration that cannot be read is reported once, and the functions are used without it", async () => {
  for (const name of ["one", "two"]) {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, "index.ts"), "Deno.serve(() => new Response());");
  }
  await writeFile(join(folder, "deno.json"), '{ "imports": ');
  const { byName, problems } = readFunctions(folder);
  expect([...byName.keys()].sort()).toEqual(["one", "two"]);
  expect([...byName.values()].map(({ importMap, jsx }) => [importMap, jsx])).toEqual([
    [null, null],
    [null, null],
  ]);
  expect(problems).toEqual([expect.stringContaining(join(folder, "deno.json"))]);
});
