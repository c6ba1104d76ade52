import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readErrors } from "../../../rest-gateway/pages/error-page.ts";
import { serviceFiles } from "../../repository.ts";

const chapters = readErrors();
const codes = chapters.flatMap(({ entries }) => entries.map(({ code }) => code));

/** Codes as they stand in the programs: in errors, SQLSTATEs among them, in GraphQL's extensions, in the table of SQLSTATEs. */
function codesInPrograms(): Set<string> {
  const programs = serviceFiles().filter((file) => !file.startsWith("service/"));
  const texts = programs.map((file) => readFileSync(file, "utf8"));
  const thrown =
    /(?:new (?:ApiError\(\s*"\w+"|HttpError\(\s*\d+),|\bcode:|\bcode =|: )\s*"([A-Z]+(?:_[A-Z]+)+|PGRST\d{3})"/g;
  const inPostgresWords = /new (?:ApiError\(\s*"\w+"|HttpError\(\s*\d+),\s*"([0-9A-Z]{5})"/g;
  const found = (text: string) => [...text.matchAll(thrown), ...text.matchAll(inPostgresWords)];
  return new Set(texts.flatMap((text) => found(text).map(([, code]) => code!)));
}

/** Names in the programs that look like error codes, but are not sent to clients. */
const OTHERS = /^((OAUTH|EAI|ADMIN)_|(USERS_ACCESS|FULL_OBJECT)$|(\w+_)?DATABASE_URL$)/;

describe("the page of errors", () => {
  test("has a line for every code in the source", () => {
    const used = [...codesInPrograms()].filter((code) => !OTHERS.test(code));
    expect(used.length).toBeGreaterThan(60);
    expect(used.filter((code) => !codes.includes(code)).sort()).toEqual([]);
  });

  test("has one line for each, in alphabetical order", () => {
    for (const { entries } of chapters.slice(0, 2)) {
      const own = entries.map(({ code }) => code);
      expect(own).toEqual([...new Set(own)].sort());
    }
  });

  test("has the meaning and the remedy of each", () => {
    for (const { entries } of chapters) {
      for (const { code, status, meaning, remedy } of entries) {
        expect(`${code} ${status}`).toMatch(/^\w+ (\d{3}(, \d{3})*)?$/);
        expect(meaning).toMatch(/\.$/);
        expect(remedy).toMatch(/\.$/);
      }
    }
  });
});
