import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";
import { findHardPhrases } from "./language.ts";

const PAGES = ["*.md", "docs/**/*.md", "*/README.md", "*/*/README.md", "templates/**/*.md"];
/** The changelog is a record. */
const NOT_READ = ["CHANGELOG.md", "node_modules/**", "dist/**"];
const SOURCES = ["*/**/*.ts"];
/** The descriptions of arguments are in recorded schemas. */
const NOT_MESSAGES = ["node_modules/**", "dist/**", "test/**", "bench/**", "examples/**", "plugins/**"];

const textOf = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const filesOf = (patterns: readonly string[], exclude: readonly string[]) =>
  globSync(patterns, { cwd: REPOSITORY, exclude }).sort();

/** Texts in a program that are sentences: an upper-case letter, several words, a full stop. */
const MESSAGE = /"([A-Z](?:[^"\\\n]|\\.)* [^"\n]* [^"\n]*\.)"|`([A-Z][^`\n]* [^`\n]* [^`\n]*\.)`/g;

describe("what people read has no phrase that must be read twice", () => {
  test("pages", () => {
    const pages = filesOf(PAGES, NOT_READ);
    expect(pages.length).toBeGreaterThan(80);
    expect(pages.flatMap((path) => findHardPhrases(textOf(path)).map((found) => `${path}: ${found}`))).toEqual([]);
  });

  test("messages, and the texts of Studio", () => {
    const messages = filesOf(SOURCES, NOT_MESSAGES).flatMap((path) =>
      [...textOf(path).matchAll(MESSAGE)].map(([, quoted, template]) => ({ path, text: (quoted ?? template)! })),
    );
    expect(messages.length).toBeGreaterThan(500);
    expect(messages.flatMap(({ path, text }) => findHardPhrases(text).map((found) => `${path}: ${found}`))).toEqual([]);
  });
});

describe("finding phrases", () => {
  test.each([
    "Unset: found out.",
    "It is checked. What a router supports is detected.",
    "Who may insert is answered 201.",
    "| `A` | Measured on two cores. |",
    "One that changed no row is in the next message.",
    "That takes 580 MB.",
    "Elsewhere, comes `must-refetch`.",
    "Without any, joins are refused.",
    "The same for the anonymous role.",
    "Divided among the workers are the pools.",
    "Use one of Allow.",
  ])("finds “%s”", (text) => {
    expect(findHardPhrases(text)).not.toEqual([]);
  });

  test.each([
    "What is a policy?",
    "If it is not set, the service detects it.",
    "The rows that were measured are below.",
    "```sh\n# Measured on two cores.\n```",
    "# What it is, and for whom\n\nYour application has users.",
  ])("has nothing against “%s”", (text) => {
    expect(findHardPhrases(text)).toEqual([]);
  });
});
