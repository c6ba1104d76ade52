import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY, repositoryFiles } from "./repository.ts";

const BEGINNING = /^(?<indent> *)test(?:\.\w+)*[(`]/;
/**
 * An assertion, or a helper that asserts and says so by its name: one that begins with expect, assert or verify, or one that waits for
 * a named thing (`untilResult`). A bare `until` is not: the subject of a test should be seen as its assertion.
 */
const ASSERTS = /\b(?:expect|assert|verify)(?:[A-Z]\w*)?\b|\buntil[A-Z]\w*\(|\.until\(/;

type TestBody = { readonly line: number; readonly text: string };

/** The tests of a file. The formatter indents what belongs to one; the next test or the end of the file ends it, too. */
function testsOf(source: string): TestBody[] {
  const lines = source.split("\n");
  return lines.flatMap((line, index): TestBody[] => {
    const indent = BEGINNING.exec(line)?.groups?.indent;
    if (indent === undefined) return [];
    const isEnd = (each: string) =>
      (each.startsWith(`${indent}}`) || each.startsWith(`${indent})`)) && each.endsWith(";");
    const isOutside = (each: string) => BEGINNING.test(each) || /^ *describe\b/.test(each);
    const rest = line.endsWith(");") ? [] : lines.slice(index + 1);
    const end = rest.findIndex((each) => isEnd(each) || isOutside(each));
    return [{ line: index + 1, text: [line, ...rest.slice(0, end < 0 ? rest.length : end)].join("\n") }];
  });
}

describe("a test", () => {
  test("has an assertion that is seen in its body", () => {
    const found = repositoryFiles("test/**/*.test.ts").flatMap((file) =>
      testsOf(readFileSync(join(REPOSITORY, file), "utf8")).map((body) => ({ file, ...body })),
    );
    expect(found.length).toBeGreaterThan(5_000);
    const silent = found.filter(({ text }) => !ASSERTS.test(text)).map(({ file, line }) => `${file}:${line}`);
    expect(silent).toEqual([]);
  });

  test("is found with what it has", () => {
    const source = [
      'test("one", () => until(() => true));',
      'describe("more", () => {',
      '  test.each([1])("two %i", async () => {',
      "    await until(() => true);",
      "  });",
      '  test("three", () => {',
      "    expect(1).toBe(1);",
      "  });",
      '  test("four", () =>',
      "    withDatabase(async (client) => {",
      "      expect(client).toBe(1);",
      "    }));",
      "});",
    ].join("\n");
    expect(testsOf(source).map(({ line, text }) => [line, ASSERTS.test(text)])).toEqual([
      [1, false],
      [3, false],
      [6, true],
      [9, true],
    ]);
  });
});
