import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import type { GuideSection } from "./render-markdown.ts";

/** The package root: two levels up from the sources, three from `dist`. */
export const DOCUMENT_ROOT = ["../..", "../../.."]
  .map((path) => join(import.meta.dirname, path))
  .find((root) => existsSync(join(root, "README.md")))!;

const OVERVIEW: GuidePage = {
  slug: "readme",
  file: "README.md",
  title: "Overview",
  about: "what the service is, and the first five minutes",
  group: "Start",
};

/** Its tables of pages are the only list of them. */
export const PAGE_INDEX = "docs/README.md";
const GROUP_OR_PAGE = /^\*\*(?<group>.+)\*\*$|^\| \[(?<title>[^\]]+)\]\((?<file>[^)]+\.md)\) \| (?<about>.*) \|$/gm;

export type GuidePage = {
  /** The path below `/docs/guide`. */
  readonly slug: string;
  /** Relative to the package root. */
  readonly file: string;
  readonly title: string;
  readonly about: string;
  readonly group: string;
};

export function readGuidePages(): GuidePage[] {
  const index = readFileSync(join(DOCUMENT_ROOT, PAGE_INDEX), "utf8");
  const pages = [OVERVIEW];
  let group = OVERVIEW.group;
  for (const { groups } of index.matchAll(GROUP_OR_PAGE)) {
    const { title, about } = groups!;
    group = groups!.group ?? group;
    const file = groups!.file && normalize(join(dirname(PAGE_INDEX), groups!.file));
    if (file) pages.push({ slug: slugOf(file), file, title: title!, about: about!, group });
  }
  return pages;
}

/** `docs/rest.md` -> `rest`, `db/README.md` -> `db`. */
function slugOf(file: string): string {
  return file
    .replace(/^docs\//, "")
    .replace(/(\/README)?\.md$/, "")
    .toLowerCase();
}

type SearchEntry = {
  readonly page: GuidePage;
  readonly section: GuideSection;
};

export type SearchResult = SearchEntry & {
  /** The text around the first word that was found; odd parts are words that were searched. */
  readonly excerpt: readonly string[];
};

/** Longer queries are cut. */
export const MAX_QUERY_LENGTH = 100;
const MAX_RESULTS = 20;
const MAX_WORDS = 8;
const EXCERPT_BEFORE = 60;
const EXCERPT_LENGTH = 220;

const PAGE_TITLE_SCORE = 12;
const HEADING_SCORE = 8;
const WORD_START_SCORE = 2;
const MAX_COUNTED_OCCURRENCES = 4;

type IndexedEntry = SearchEntry & { readonly title: string; readonly heading: string; readonly text: string };

/** Finds the sections that contain all words of a query, best first. */
export function makeSearch(entries: readonly SearchEntry[]): (query: string) => SearchResult[] {
  const indexed = entries.map((entry) => ({
    ...entry,
    title: entry.page.title.toLowerCase(),
    heading: entry.section.heading.toLowerCase(),
    text: entry.section.text.toLowerCase(),
  }));
  return (query) => {
    const words = wordsOf(query);
    if (words.length === 0) return [];
    return indexed
      .map((entry) => ({ entry, score: scoreOf(entry, words) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, MAX_RESULTS)
      .map(({ entry: { page, section } }) => ({ page, section, excerpt: excerptOf(section.text, words) }));
  };
}

function wordsOf(query: string): string[] {
  const words =
    query
      .slice(0, MAX_QUERY_LENGTH)
      .toLowerCase()
      .match(/[\p{L}\p{N}_/@.-]*[\p{L}\p{N}_]/gu) ?? [];
  return [...new Set(words)].slice(0, MAX_WORDS);
}

/** 0 if a word is missing. */
function scoreOf({ title, heading, text }: IndexedEntry, words: readonly string[]): number {
  let total = 0;
  for (const word of words) {
    let score = title.includes(word) ? PAGE_TITLE_SCORE : 0;
    if (heading.includes(word)) score += HEADING_SCORE;
    let at = text.indexOf(word);
    for (let count = 0; at >= 0 && count < MAX_COUNTED_OCCURRENCES; count += 1) {
      score += isWordStart(text, at) ? WORD_START_SCORE : 1;
      at = text.indexOf(word, at + word.length);
    }
    if (score === 0) return 0;
    total += score;
  }
  return total;
}

function isWordStart(text: string, at: number): boolean {
  return at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!);
}

function excerptOf(text: string, words: readonly string[]): string[] {
  const pattern = words.map((word) => RegExp.escape(word)).join("|");
  const first = Math.max(0, text.search(new RegExp(pattern, "i")));
  const from = first <= EXCERPT_BEFORE ? 0 : text.indexOf(" ", first - EXCERPT_BEFORE) + 1;
  const cut = text.slice(from, from + EXCERPT_LENGTH);
  const isCut = from + EXCERPT_LENGTH < text.length;
  const excerpt = `${from > 0 ? "… " : ""}${isCut ? `${cut.replace(/\s\S*$/, "")} …` : cut}`;
  return excerpt.split(new RegExp(`(${pattern})`, "i"));
}
