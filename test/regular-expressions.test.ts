// Texts of requests may take a regular expression no more than linear time: a quadratic one holds the process for seconds.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseSync } from "rolldown/utils";
import { expect, test } from "vitest";
import { REPOSITORY, serviceFiles } from "./repository.ts";

/** Folders whose expressions read texts of operators only: settings, migrations, commands, and the database's own definitions. */
const OF_OPERATORS = /^(archive|cluster|config|migrate|operations|service)\//;

/** Expressions that take quadratic time, and why no request brings them a long text. */
const BOUNDED: Readonly<Record<string, string>> = {
  "/=+$/": "base64 of a hash",
  "/_+$/": "names of columns",
  [String.raw`/[\p{L}\p{N}_/@.-]*[\p{L}\p{N}_]/gu`]: "MAX_QUERY_LENGTH",
  [String.raw`/!?\[([^\]]*)\]\([^)]*\)/g`]: "the pages of the guide",
  [String.raw`/(?:"(?<quoted>(?:[^"]|"")+)"|(?<plain>[a-z_][\w$]*))\./gi`]: "definitions of the database",
  [String.raw`/([\d.]+)([a-zµ]+)/g`]: "durations that BAN_DURATION accepts, in which each number has a unit",
};

type Found = { readonly file: string; readonly source: string; readonly flags: string };

/** The literals of a file. */
function expressionsOf(file: string, code: string): Found[] {
  const found: Found[] = [];
  const visit = (node: unknown): void => {
    if (node === null || typeof node !== "object") return;
    const { regex } = node as { regex?: { pattern: string; flags: string } };
    if (regex) found.push({ file, source: regex.pattern, flags: regex.flags });
    for (const value of Object.values(node)) visit(value);
  };
  visit(parseSync(file, code).program);
  return found;
}

const LENGTH = 10_000;
/** A linear expression reads so many characters in less than a millisecond, a quadratic one in a hundred. */
const LIMIT_MS = 20;

/** Texts that repeat characters of the expression, with a beginning and an end of its own characters. */
function* attacksOn(source: string): Generator<string> {
  const own = new Set(source.replace(/\\[dswbDSWBux]/g, "").replace(/[\\^$*+?()[\]{}|]/g, ""));
  const characters = [...new Set(["a", "1", " ", "\n", "-", '"', "(", "<", "[", ...own])].slice(0, 24);
  for (const each of characters) {
    for (const end of ["\n\0", "", "a"]) yield each.repeat(LENGTH) + end;
  }
  const words = source.match(/\w{2,}/g) ?? [];
  for (const pump of [...pairsOf(characters.slice(0, 10)), ...words]) yield pump.repeat(LENGTH / pump.length) + "\n\0";
}

const pairsOf = (characters: readonly string[]) => characters.flatMap((one) => characters.map((other) => one + other));

function isSlow({ source, flags }: Found): boolean {
  if (!/[*+,]/.test(source)) return false;
  const expression = new RegExp(source, flags);
  return attacksOn(source).some((text) => {
    const isLate = () => {
      const start = performance.now();
      text.replace(expression, "");
      return performance.now() - start > LIMIT_MS;
    };
    // Several times, because the process may have been interrupted.
    return isLate() && isLate() && isLate();
  });
}

test("regular expressions that read requests take linear time", async () => {
  const all = new Map<string, Found>();
  for (const file of serviceFiles().filter((name) => !OF_OPERATORS.test(name))) {
    for (const each of expressionsOf(file, await readFile(join(REPOSITORY, file), "utf8")))
      all.set(`/${each.source}/${each.flags}`, each);
  }
  expect(all.size).toBeGreaterThan(300);
  expect(Object.keys(BOUNDED).filter((key) => !all.has(key))).toEqual([]);
  const slow = [...all].filter(([key, each]) => !(key in BOUNDED) && isSlow(each));
  expect(slow.map(([key, { file }]) => `${file}: ${key}`)).toEqual([]);
});
