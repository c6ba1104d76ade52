import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

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

/** The README's tables of pages are the only list of them. */
const DOCUMENTATION_SECTION = /^## Documentation$(?<tables>.*?)^## /ms;
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
  const readme = readFileSync(join(DOCUMENT_ROOT, OVERVIEW.file), "utf8");
  const pages = [OVERVIEW];
  let group = OVERVIEW.group;
  for (const { groups } of DOCUMENTATION_SECTION.exec(readme)!.groups!.tables!.matchAll(GROUP_OR_PAGE)) {
    const { title, file, about } = groups!;
    group = groups!.group ?? group;
    if (file !== undefined) pages.push({ slug: slugOf(file), file, title: title!, about: about!, group });
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
