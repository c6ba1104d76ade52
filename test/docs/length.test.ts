import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { repositoryFiles } from "../repository.ts";

/** May only fall: a page that grows makes another one shorter. */
const MOST_WORDS = 51_470;
const LONGEST_CELL = 25;

/** Those of the reference are written by a test, mostly requests and responses; the benchmarks by a command. */
const isWritten = (file: string) => file !== "docs/benchmarks.md" && !file.startsWith("docs/reference/");
const PAGES = ["README.md", ...repositoryFiles("docs/*.md").filter(isWritten)];
const CODE_BLOCK = /^```.*?^```$/gms;

const wordsIn = (text: string) => text.split(/\s+/).filter((word) => word !== "").length;

function longestCell(page: string): number {
  const rows =
    readFileSync(page, "utf8")
      .replace(CODE_BLOCK, "")
      .match(/^\|.*\|$/gm) ?? [];
  const cells = rows.flatMap((row) => row.slice(1, -1).split(/(?<!\\)\|/));
  return Math.max(0, ...cells.map(wordsIn));
}

describe("the length of the documentation", () => {
  test(`is at most ${MOST_WORDS.toLocaleString("en")} words`, () => {
    const words = PAGES.map((page) => wordsIn(readFileSync(page, "utf8")));
    expect(words.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(MOST_WORDS);
  });

  test.each(PAGES)(`leaves at most ${LONGEST_CELL} words in a cell of %s`, (page) => {
    expect(longestCell(page)).toBeLessThanOrEqual(LONGEST_CELL);
  });
});
