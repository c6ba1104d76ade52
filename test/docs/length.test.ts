import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { repositoryFiles } from "../repository.ts";

/** May only fall: a page that grows makes another one shorter. */
const MOST_WORDS = 92_700;
const LONGEST_CELL = 25;
/** Pages whose tables still have longer cells, with the longest. May only fall. */
const LONGER_CELLS: Readonly<Record<string, number>> = {
  "docs/admin-interface.md": 66,
  "docs/architecture.md": 30,
  "docs/asynchronous.md": 85,
  "docs/backup.md": 37,
  "docs/database-guide.md": 65,
  "docs/deployment.md": 52,
  "docs/engines.md": 56,
  "docs/errors.md": 29,
  "docs/faults.md": 37,
  "docs/federation.md": 44,
  "docs/high-availability.md": 56,
  "docs/limits.md": 59,
  "docs/moving.md": 55,
  "docs/observability.md": 28,
  "docs/policy-tests.md": 46,
  "docs/projects.md": 30,
  "docs/realtime.md": 26,
  "docs/replicas.md": 57,
  "docs/rest.md": 33,
  "docs/schedules.md": 27,
  "docs/security.md": 43,
  "docs/settings.md": 72,
  "docs/studio.md": 34,
  "docs/table-interface.md": 26,
  "docs/webhooks.md": 35,
};

const PAGES = ["README.md", ...repositoryFiles("docs/*.md")];
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
    expect(longestCell(page)).toBeLessThanOrEqual(LONGER_CELLS[page] ?? LONGEST_CELL);
  });
});
