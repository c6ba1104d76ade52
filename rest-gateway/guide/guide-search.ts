import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DOCUMENT_ROOT, type GuidePage, readGuidePages } from "./guide-pages.ts";
import type { GuideSection } from "./render-markdown.ts";

type SearchEntry = {
  readonly page: GuidePage;
  readonly section: GuideSection;
};

export type GuideSearchResult = SearchEntry & {
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
export function makeSearch(entries: readonly SearchEntry[]): (query: string) => GuideSearchResult[] {
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

/** Returns the score; 0 if a word is missing. */
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

/** A section that contains the searched words. */
type FoundSection = { readonly page: string; readonly heading: string; readonly excerpt: string };

/** The documentation as texts, for programs. */
type GuideText = {
  /** Returns the sections that contain all words, best first. */
  readonly search: (words: string) => FoundSection[];
  /** Returns a page as Markdown; null if there is none of this name. */
  readonly read: (page: string) => string | null;
  /** All names of pages. */
  readonly names: readonly string[];
};

export async function readGuideText(): Promise<GuideText> {
  const { renderMarkdown } = await import("./render-markdown.ts");
  const pages = new Map(readGuidePages().map((page) => [page.slug, page]));
  const textOf = (file: string) => readFileSync(join(DOCUMENT_ROOT, file), "utf8");
  const entries = [...pages.values()].flatMap((page) =>
    renderMarkdown(textOf(page.file), () => null).sections.map((section) => ({ page, section })),
  );
  const search = makeSearch(entries);
  return {
    search: (words) =>
      search(words).map(({ page, section, excerpt }) => ({
        page: page.slug,
        heading: section.heading,
        excerpt: excerpt.join(""),
      })),
    read: (name) => {
      const page = pages.get(name);
      return page ? textOf(page.file) : null;
    },
    names: [...pages.keys()],
  };
}
