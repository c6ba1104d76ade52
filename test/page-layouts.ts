import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Result } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { propertyRuns } from "./property-runs.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns only violations, since the elements of all rules are many; in the dark only those of colours: all else is as in the light. */
const RUN_AXE = `{
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const rules = isDark ? { runOnly: ["color-contrast", "link-in-text-block"] } : {};
  axe.run({ ...rules, resultTypes: ["violations"] }).then(({ violations }) => violations);
}`;

/** A phone and a large screen, in both colour schemes. */
const LAYOUTS = [390, 1400].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme) => ({ width, colorScheme })),
);

/** Returns two layouts that differ in width and in colours, unless all runs are made. Half of all names have the phone in the dark. */
export function layoutsOf(name: string): typeof LAYOUTS {
  if (propertyRuns(LAYOUTS.length) === LAYOUTS.length) return LAYOUTS;
  const isDarkOnPhones = name.length % 2 === 0;
  return LAYOUTS.filter(({ width, colorScheme }) => (width < 1_000 === (colorScheme === "dark")) === isDarkOnPhones);
}

/**
 * Checks the layouts of that name, one after the other: the pages adapt by styles alone, so they need not be loaded again. To show their pictures,
 * SCREENSHOTS names a folder.
 */
export async function expectAccessibleLayouts(page: Page, name: string): Promise<void> {
  for (const { width, colorScheme } of layoutsOf(name)) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    if (process.env.SCREENSHOTS) {
      const path = join(process.env.SCREENSHOTS, `${name.replaceAll(" ", "-")}-${width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
    }
    await expectAccessible(page);
  }
}

/** Fails for violations that axe finds, and for a page that is wider than its window. */
export async function expectAccessible(page: Page): Promise<void> {
  if (await page.evaluate<boolean>("typeof axe === 'undefined'")) await page.evaluate(AXE);
  const violations = await page.evaluate<Result[]>(RUN_AXE);
  const found = violations.map(({ id, nodes }) => ({ id, elements: nodes.map(({ html }) => html) }));
  const excess = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  expect({ found, isTooWide: excess > 0 }).toEqual({ found: [], isTooWide: false });
}
