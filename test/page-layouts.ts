import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A phone and a large screen, in both colour schemes. */
export const LAYOUTS = [390, 1400].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme) => ({ width, colorScheme })),
);

/** Fails for violations that axe finds, and for a page that is wider than its window. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>("axe.run()");
  const found = violations.map(({ id, nodes }) => ({ id, elements: nodes.map(({ html }) => html) }));
  const excess = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  expect({ found, isTooWide: excess > 0 }).toEqual({ found: [], isTooWide: false });
}
