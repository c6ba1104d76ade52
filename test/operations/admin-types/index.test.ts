import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../../repository.ts";
import { importsOf } from "../../rooms.ts";

const FOLDER = "operations/admin-types/";

/** Returns the text of a module without its types and comments. */
function runningCode(text: string): string {
  return stripTypeScriptTypes(text)
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "")
    .replaceAll(";", "")
    .trim();
}

test("the types of the admin interface run nothing and import only each other, so that Studio can use them", () => {
  expect(runningCode("export type One = 1;\nexport const one: One = 1;")).toContain("one");
  const files = readdirSync(join(REPOSITORY, FOLDER)).filter((name) => name.endsWith(".ts"));
  expect(files).toContain("index.ts");
  for (const file of files.map((name) => FOLDER + name)) {
    const text = readFileSync(join(REPOSITORY, file), "utf8");
    expect([file, runningCode(text)]).toEqual([file, ""]);
    expect([file, importsOf(file, text).filter((imported) => !imported.startsWith(FOLDER))]).toEqual([file, []]);
  }
});
