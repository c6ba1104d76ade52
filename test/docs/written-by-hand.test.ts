import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

const textOf = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

type Manifest = Readonly<Record<"dependencies" | "devDependencies", Readonly<Record<string, string>> | undefined>>;

const { dependencies = {}, devDependencies = {} } = JSON.parse(textOf("package.json")) as Manifest;
const VERSIONS: Readonly<Record<string, string>> = { ...dependencies, ...devDependencies };

const PAGES = ["README.md", "CONTRIBUTING.md", ...readdirSync(join(REPOSITORY, "docs")).map((name) => `docs/${name}`)];

/** The cells of the first table of the page. */
function readRows(): readonly (readonly string[])[] {
  const [, table] = /\n\| --- .*\n((?:\|.*\n)+)/.exec(textOf("docs/written-by-hand.md"))!;
  const lines = table!.trimEnd().split("\n");
  return lines.map((line) => line.slice(2, -2).split(" | "));
}

const codeIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

function linesOf(path: string): number {
  if (statSync(join(REPOSITORY, path)).isDirectory()) {
    const names = readdirSync(join(REPOSITORY, path)).map((name) => join(path, name));
    return names.reduce((sum, name) => sum + linesOf(name), 0);
  }
  return path.endsWith(".ts") ? textOf(path).split("\n").length - 1 : 0;
}

const rows = readRows();

describe("the page of what is written by hand", () => {
  test("has a part, files, lines, a library, a reason and a date in each row", () => {
    expect(rows.length).toBeGreaterThan(10);
    for (const [part, files, lines, library, reason, date, ...rest] of rows) {
      expect([part, reason, library].every((cell) => cell !== "")).toBe(true);
      expect(codeIn(files!).length).toBeGreaterThan(0);
      expect(Number(lines)).toBeGreaterThan(0);
      expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
      expect(rest).toEqual([]);
    }
  });

  test.each(rows.map(([part, files, lines]) => ({ part, files: codeIn(files!), stated: Number(lines) })))(
    "states the lines of $part, to a tenth",
    ({ files, stated }) => {
      const counted = files.reduce((sum, path) => sum + linesOf(path), 0);
      expect(Math.abs(counted - stated) / counted).toBeLessThan(0.1);
    },
  );
});

const NAMED_VERSION = /`((?:@[a-z][\w-]*\/)?[a-z][\w.-]*)` (\d+\.\d+\.\d+[\w.-]*)/g;

test("a page that names a version of a dependency names the installed one", () => {
  const stale = PAGES.filter((page) => page.endsWith(".md")).flatMap((page) =>
    [...textOf(page).matchAll(NAMED_VERSION)]
      .filter(([, name, version]) => Object.hasOwn(VERSIONS, name!) && VERSIONS[name!] !== version)
      .map(([text]) => `${page}: ${text}`),
  );
  expect(stale).toEqual([]);
});

/** `We use x 1.2.3`, ``uses `x` ``, `by the package x`: names of packages are lower case. */
const USED_PACKAGE = /\b(?:[Ww]e use|uses? the (?:package|library)|by the (?:package|library)) `([@a-z][\w./-]*)`/g;
const USED_VERSION = /\buses? `?((?:@[a-z][\w-]*\/)?[a-z][\w.-]*)`? \d+\.\d+\.\d+/g;

test("a page that says that we use a package names a dependency", () => {
  const used = PAGES.filter((page) => page.endsWith(".md")).flatMap((page) => {
    const text = textOf(page);
    return [...text.matchAll(USED_PACKAGE), ...text.matchAll(USED_VERSION)].map(([, name]) => ({ page, name: name! }));
  });
  expect(used.length).toBeGreaterThan(0);
  expect(used.filter(({ name }) => !Object.hasOwn(VERSIONS, name))).toEqual([]);
});

test("the sentences that the test above looks for are found", () => {
  const found = (text: string) =>
    [...text.matchAll(USED_PACKAGE), ...text.matchAll(USED_VERSION)].map(([, name]) => name);
  expect(found("Here we use `left-pad` for it.")).toEqual(["left-pad"]);
  expect(found("Migrations use graphile-migrate 2.0.0.")).toEqual(["graphile-migrate"]);
  expect(found("This uses the package `@x/y`.")).toEqual(["@x/y"]);
});
