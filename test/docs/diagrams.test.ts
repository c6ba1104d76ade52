import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";
import { drawDiagram, parseDiagram } from "./diagrams.ts";

// `RECORD=diagrams npx vitest run test/docs/diagrams.test.ts` draws docs/pictures from docs/diagrams.

const textOf = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

const DIAGRAMS = globSync("docs/diagrams/*.txt", { cwd: REPOSITORY })
  .sort()
  .map((path) => ({ name: basename(path, ".txt"), diagram: parseDiagram(textOf(path)) }));
/** The texts of a picture on all pages, as those who do not see it read them. */
const altsOf = (name: string) =>
  globSync("docs/**/*.md", { cwd: REPOSITORY }).flatMap((path) =>
    [...textOf(path).matchAll(/!\[([^\]]*)\]\([./]*pictures\/([\w-]+)\.svg\)/g)]
      .filter(([, , picture]) => picture === name)
      .map(([, alt]) => alt),
  );

test("there are the diagrams that newcomers need", () => {
  expect(DIAGRAMS.length).toBeGreaterThanOrEqual(8);
});

describe.each(DIAGRAMS)("the diagram $name", ({ name, diagram }) => {
  test("is what its text draws", () => {
    const [path, drawn] = [`docs/pictures/${name}.svg`, drawDiagram(diagram)];
    if (process.env.RECORD === "diagrams") writeFileSync(join(REPOSITORY, path), drawn);
    expect(textOf(path)).toBe(drawn);
  });

  test("is on a page, with the text that says what it shows", () => {
    expect(diagram.alt.length).toBeGreaterThan(60);
    expect(altsOf(name)).toContain(diagram.alt);
  });
});

describe("drawing a diagram", () => {
  const draw = (...lines: string[]) => drawDiagram(parseDiagram(lines.join("\n")));

  test("escapes texts, and draws an arrow between the sides that face each other", () => {
    const drawn = draw("grid 100 40 60 30", "box a 0 0 a < b", "store b 1 0 c & d", "arrow a b");
    expect(drawn).toContain(">a &lt; b</text>");
    expect(drawn).toContain(">c &amp; d</text>");
    expect(drawn).toContain('d="M112 32L172 32"');
  });

  test("refuses what cannot be read: a text wider than its box, a label wider than its space, and unknown boxes or lines", () => {
    expect(() => draw("grid 40 40 60 30", "box a 0 0 a long text")).toThrow("too long");
    const two = ["grid 100 40 40 30", "box a 0 0 a", "box b 1 0 b"];
    expect(() => draw(...two, "arrow a b a long label")).toThrow("too long");
    expect(() => draw(...two, "arrow a c")).toThrow("no box c");
    expect(() => draw("circle a 0 0")).toThrow("none of a diagram");
  });
});
