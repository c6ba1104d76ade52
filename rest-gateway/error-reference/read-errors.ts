import { readFileSync } from "node:fs";
import { join } from "node:path";

export type Chapter = { readonly title: string; readonly about: string; readonly entries: readonly Entry[] };

export type Entry = {
  readonly code: string;
  /** HTTP statuses, such as `400, 401`; empty for what only GraphQL says. */
  readonly status: string;
  /** The interfaces that say it. */
  readonly where: string;
  readonly meaning: string;
  readonly remedy: string;
};

/** The one table of errors is the page that people read. */
const SOURCE = join(import.meta.dirname, "../../docs/errors.md");
const CHAPTER = /^## (?<title>.+)\n\n(?<about>[^|]+)\n\n(?<table>(?:\|.*\n)+)/gm;
const LINE = /^\| `(?<code>\w+)` \| (?<status>[^|]*) \| (?<where>[^|]*) \| (?<meaning>[^|]*) \| (?<remedy>[^|]*) \|$/gm;

export function readErrors(): Chapter[] {
  return [...readFileSync(SOURCE, "utf8").matchAll(CHAPTER)].map(({ groups }) => {
    const { title, about, table } = groups as { title: string; about: string; table: string };
    return { title, about, entries: [...table.matchAll(LINE)].map((line) => ({ ...line.groups }) as Entry) };
  });
}
