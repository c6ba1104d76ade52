import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
/** The most files of each path that the page walks. */
const MAX_FILES: Readonly<Record<string, number>> = {
  "A REST request": 20,
  "A GraphQL operation": 15,
  "A sign-in": 8,
  "A live query": 12,
  "An upload": 6,
  "A migration": 8,
};
const STEP = /^(\d+)\. `([\w./-]+\.ts)` `(\w+)`/;

const page = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
const sectionOf = (heading: string) => page.slice(page.indexOf(`## ${heading}\n`)).split("\n## ", 1)[0]!;
const stepsOf = (text: string) =>
  text.split("\n").flatMap((line) => {
    const [, number, file, name] = STEP.exec(line) ?? [];
    return file && name ? [{ number, file, name }] : [];
  });
const section = sectionOf("A REST request");
const steps = stepsOf(section);
const otherSteps = Object.keys(MAX_FILES)
  .slice(1)
  .flatMap((heading) => stepsOf(sectionOf(heading)));

describe("the path of a REST read in docs/architecture.md", () => {
  test("is numbered from 1", () => {
    expect(steps.map(({ number }) => Number(number))).toEqual(steps.map((_, index) => index + 1));
    expect(steps.length).toBeGreaterThan(15);
  });

  test.each([...steps, ...otherSteps])("$file declares $name", ({ file, name }) => {
    const path = join(ROOT, file);
    expect(existsSync(path), file).toBe(true);
    const declaration = new RegExp(
      `^export (?:default )?(?:abstract )?(?:async )?(?:function\\*?|class|type|const) ${name}\\b`,
      "m",
    );
    expect(readFileSync(path, "utf8")).toMatch(declaration);
  });

  test("names the stages in their order", () => {
    const stages = [...section.matchAll(/^\*\*(\w+)\*\*: /gm)].map(([, stage]) => stage);
    expect(stages).toEqual(["authenticate", "parse", "plan", "query", "run", "respond"]);
  });
});

test.each(Object.entries(MAX_FILES))("the path %s takes at most %i files", (heading, most) => {
  const found = stepsOf(sectionOf(heading)).map(({ file }) => file);
  expect(found.length).toBeGreaterThan(4);
  expect(new Set(found).size).toBeLessThanOrEqual(most);
});
