import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DOCUMENT_ROOT, makeSearch, readGuidePages } from "./guide-pages.ts";
import { renderMarkdown } from "./render-markdown.ts";

/** Where words were found. */
export type FoundSection = { readonly page: string; readonly heading: string; readonly excerpt: string };

/** The documentation as texts, for programs. */
export type GuideText = {
  /** The sections with all words, best first. */
  readonly search: (words: string) => FoundSection[];
  /** A page as Markdown; null if there is none of this name. */
  readonly read: (page: string) => string | null;
  /** All names of pages. */
  readonly names: readonly string[];
};

export function readGuideText(): GuideText {
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
