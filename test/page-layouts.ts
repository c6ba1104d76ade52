import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Result } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Only what is violated, since the elements of all rules are many. In the dark only what colours violate: all else is as in the light. */
const RUN_AXE = `{
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const rules = isDark ? { runOnly: ["color-contrast", "link-in-text-block"] } : {};
  axe.run({ ...rules, resultTypes: ["violations"] }).then(({ violations }) => violations);
}`;

/** A phone and a large screen, in both colour schemes. */
export const LAYOUTS = [390, 1400].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme) => ({ width, colorScheme })),
);

/** Fails for violations that axe finds, and for a page that is wider than its window. */
export async function expectAccessible(page: Page): Promise<void> {
  if (await page.evaluate<boolean>("typeof axe === 'undefined'")) await page.evaluate(AXE);
  const violations = await page.evaluate<Result[]>(RUN_AXE);
  const found = violations.map(({ id, nodes }) => ({ id, elements: nodes.map(({ html }) => html) }));
  const excess = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  expect({ found, isTooWide: excess > 0 }).toEqual({ found: [], isTooWide: false });
}
