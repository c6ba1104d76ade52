import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

const PAGES = globSync(["README.md", "CONTRIBUTING.md", "db/README.md", "docs/**/*.md", "templates/**/*.md"], {
  cwd: REPOSITORY,
});
const BLOCK = /^```sh\n(.*?)^```$/gms;
/** The package is not published: npm would download what somebody else has published under its name. */
const FROM_REGISTRY = /\bnpm (?:i|install|add|update|create) (?:[^\n]* )?content-service(?:@\S+)?\s*$/m;
const FROM_TARBALL = /^npm install \S*\/content-service-\S+\.tgz( \S+)*$/m;

test("no page has commands that install the package, which is not published, by its name", () => {
  const blocks = PAGES.flatMap((path) =>
    [...readFileSync(join(REPOSITORY, path), "utf8").matchAll(BLOCK)].map(([, text]) => ({ path, text: text! })),
  );
  const creating = blocks.filter(({ text }) => text.includes("npx content-service init"));
  expect(creating.length).toBeGreaterThan(2);
  expect(creating.filter(({ text }) => !FROM_TARBALL.test(text))).toEqual([]);
  expect(blocks.filter(({ text }) => FROM_REGISTRY.test(text))).toEqual([]);
});
