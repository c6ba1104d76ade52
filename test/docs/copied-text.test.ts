import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

/** Files whose text readers copy. Recorded pages repeat the commands of others. */
const COPIED = ["README.md", "db/README.md", "docs/**/*.md", "templates/**/*.sql"];
const PAGES = globSync(COPIED, { cwd: REPOSITORY });
const PROTECTED_TABLE = /^\s*alter table (public\.\w+) enable row level security;/gm;

/** Returns the statements that the page lacks; Studio's form for a new table writes them, too. */
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

const COMMAND_PAGES = globSync(["README.md", "CONTRIBUTING.md", "db/README.md", "docs/**/*.md", "templates/**/*.md"], {
  cwd: REPOSITORY,
});
const BLOCK = /^```(?:sh|bash)\n(.*?)^```$/gms;
/** The package is not published: npm would download another one that somebody has published under its name. */
const FROM_REGISTRY = /\bnpm (?:i|install|add|update|create) (?:[^\n]* )?content-service(?:@\S+)?\s*$/m;
const FROM_TARBALL = /^npm install \S*\/content-service-\S+\.tgz( \S+)*$/m;

test("no page has commands that install the package, which is not published, by its name", () => {
  const blocks = COMMAND_PAGES.flatMap((path) =>
    [...readFileSync(join(REPOSITORY, path), "utf8").matchAll(BLOCK)].map(([, text]) => ({ path, text: text! })),
  );
  const creating = blocks.filter(({ text }) => text.includes("npx content-service init"));
  expect(creating.length).toBeGreaterThan(1);
  expect(creating.filter(({ text }) => !FROM_TARBALL.test(text))).toEqual([]);
  expect(blocks.filter(({ text }) => FROM_REGISTRY.test(text))).toEqual([]);
});
