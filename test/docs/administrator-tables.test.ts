import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

/** What readers copy. Recorded pages repeat the commands of others. */
const COPIED = ["README.md", "db/README.md", "docs/**/*.md", "templates/**/*.sql"];
const PAGES = globSync(COPIED, { cwd: REPOSITORY });
const PROTECTED_TABLE = /^\s*alter table (public\.\w+) enable row level security;/gm;

/** What Studio's form for a new table writes, too. */
function lacks(page: string, table: string): string[] {
  const grants = [...page.matchAll(/^\s*grant select, insert, update, delete on ([^;]+) to ([^;]+);/gm)];
  const isGranted = grants.some(
    ([, tables, roles]) => tables!.split(", ").includes(table) && roles!.split(", ").includes("admin"),
  );
  const policy = `create policy admin_all on ${table} to admin using (true) with check (true);`;
  return [...(isGranted ? [] : [`${table}: no grant`]), ...(page.includes(policy) ? [] : [`${table}: no policy`])];
}

test("administrators can work with every table that readers copy from a page or a template", () => {
  const pages = PAGES.map((path) => ({ path, text: readFileSync(join(REPOSITORY, path), "utf8") }));
  const tables = pages.flatMap(({ path, text }) =>
    [...text.matchAll(PROTECTED_TABLE)].map(([, table]) => ({ path, text, table: table! })),
  );
  expect(tables.length).toBeGreaterThan(8);
  expect(tables.flatMap(({ path, text, table }) => lacks(text, table).map((each) => `${path}: ${each}`))).toEqual([]);
});
