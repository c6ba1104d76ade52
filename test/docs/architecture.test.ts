import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const MAX_FILES = 40;
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
const otherSteps = ["A GraphQL operation", "A sign-in"].flatMap((heading) => stepsOf(sectionOf(heading)));

describe("the path of a REST read in docs/architecture.md", () => {
  test("is numbered from 1", () => {
    expect(steps.map(({ number }) => Number(number))).toEqual(steps.map((_, index) => index + 1));
    expect(steps.length).toBeGreaterThan(20);
  });

  test(`takes at most ${MAX_FILES} files`, () => {
    expect(new Set(steps.map(({ file }) => file)).size).toBeLessThanOrEqual(MAX_FILES);
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
