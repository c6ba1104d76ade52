import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

const COMMANDS = /^```sh\n(.*?)^```$/gms;

/** Pages whose requests a test of this folder sends, and compares with their responses. */
const TESTED: Readonly<Record<string, string>> = {
  "admin-interface": "interface-pages",
  asynchronous: "interface-pages",
  errors: "interface-pages",
  federation: "federation",
  functions: "functions-page",
  graphql: "interface-pages",
  rest: "interface-pages",
  "table-interface": "interface-pages",
  "guides/hasura": "moving",
  "live-data": "live-data",
  "realtime-messages": "realtime-messages",
  recipes: "recipes",
  "sign-in": "sign-in",
  "storage-operations": "storage-operations",
  "table-patterns": "table-patterns",
};

/** Pages whose requests need what a test of the documentation has not. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  walk: "The page is a record of the README, whose commands another test runs.",
};

const textOf = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

test("the requests of each page are sent by a test, or the page is an exception", () => {
  const pages = globSync(["docs/*.md", "docs/guides/*.md"], { cwd: REPOSITORY });
  const withRequests = pages
    .filter((path) => [...textOf(path).matchAll(COMMANDS)].some(([, commands]) => commands!.includes("curl ")))
    .map((path) => path.replace(/^docs\/(.*)\.md$/, "$1"));
  expect(withRequests.sort()).toEqual([...Object.keys(TESTED), ...Object.keys(EXCEPTIONS)].sort());
});

test.each(Object.entries(TESTED))("the requests of %s are sent by the test %s", (page, file) => {
  const name = page.replaceAll("/", String.raw`\/`);
  expect(textOf(`test/docs/${file}.test.ts`)).toMatch(new RegExp(`"${name}"|docs/${name}\\.md`));
});
