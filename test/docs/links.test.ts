import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { repositoryFiles } from "../repository.ts";

const LINK = /\]\((?<target>[^)\s]+)\)/g;
const EXTERNAL = /^[a-z]+:/;
const CODE = /^```.*?^```$|`[^`\n]*`/gms;

const files = repositoryFiles("*.md");

/** Anchors as GitHub generates them from headings. */
function anchorsIn(file: string): string[] {
  const headings = readFileSync(file, "utf8")
    .replace(/^```.*?^```$/gms, "")
    .matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, heading]) =>
    heading!
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function linksIn(files: readonly string[]): { file: string; target: string }[] {
  return files.flatMap((file) =>
    [...readFileSync(file, "utf8").replace(CODE, "").matchAll(LINK)]
      .map(({ groups }) => groups!.target!)
      .filter((target) => !EXTERNAL.test(target))
      .map((target) => ({ file, target })),
  );
}

function goalOf(file: string, target: string): string {
  const [path] = target.split("#") as [string];
  return path === "" ? file : normalize(join(dirname(file), path)).replace(/\/$/, "");
}

function isBroken(file: string, target: string): boolean {
  const [, anchor] = target.split("#");
  const goal = goalOf(file, target);
  if (!existsSync(goal)) return true;
  return anchor !== undefined && goal.endsWith(".md") && !anchorsIn(goal).includes(anchor);
}

describe("the documentation", () => {
  test("has no broken links", () => {
    const links = linksIn(files);
    expect(links.length).toBeGreaterThan(50);
    expect(links.filter(({ file, target }) => isBroken(file, target))).toEqual([]);
  });

  test("has no links to what the published package lacks", () => {
    const words = ["pack", "--dry-run", "--ignore-scripts", "--json"];
    const [{ files: packed }] = JSON.parse(
      execFileSync("npm", words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
    );
    const paths: string[] = packed.map(({ path }: { path: string }) => path);
    const isPacked = (goal: string) => paths.some((path) => path === goal || path.startsWith(`${goal}/`));
    const links = linksIn(paths.filter((path) => path.endsWith(".md") && files.includes(path)));
    expect(links.length).toBeGreaterThan(50);
    expect(links.filter(({ file, target }) => !isPacked(goalOf(file, target)))).toEqual([]);
  });

  test("has small pictures", () => {
    const pictures = readdirSync("docs/pictures");
    expect(pictures.length).toBeGreaterThan(0);
    expect(pictures.filter((picture) => statSync(join("docs/pictures", picture)).size > 200_000)).toEqual([]);
  });

  test("shows each picture on a page", () => {
    const shown = new Set(linksIn(files).map(({ file, target }) => goalOf(file, target)));
    const pictures = readdirSync("docs/pictures").map((picture) => `docs/pictures/${picture}`);
    expect(pictures.filter((picture) => !shown.has(picture))).toEqual([]);
  });

  test("has an index that links every page", () => {
    const index = readFileSync("docs/README.md", "utf8");
    // The reference has an index of its own, which test/docs/reference.test.ts compares.
    const isListed = (file: string) => !/^docs\/(README|reference\/(?!README).*)\.md$/.test(file);
    const pages = files.filter((file) => file.startsWith("docs/") && isListed(file));
    expect(pages.filter((page) => !index.includes(`(${page.slice("docs/".length)})`))).toEqual([]);
  });

  test("begins with a README of at most 900 words", () => {
    expect(readFileSync("README.md", "utf8").split(/\s+/).length).toBeLessThanOrEqual(900);
  });
});
