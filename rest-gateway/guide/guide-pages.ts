import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** The package root, which is two levels up from the sources and three from `dist`. */
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

/** The page whose lists of pages are the only ones. */
export const PAGE_INDEX = "docs/README.md";
const GROUP_OR_PAGE = /^\*\*(?<group>.+)\*\*$|^- \[(?<title>[^\]]+)\]\((?<file>[^)]+\.md)\): (?<about>.*)$/gm;

export type GuidePage = {
  /** The path below `/docs/guide`. */
  readonly slug: string;
  /** The path relative to the package root. */
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

/** Converts a file to a slug: `docs/rest.md` -> `rest`, `db/README.md` -> `db`. */
function slugOf(file: string): string {
  return file
    .replace(/^docs\//, "")
    .replace(/(\/README)?\.md$/, "")
    .toLowerCase();
}
