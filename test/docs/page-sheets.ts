import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import sharp, { type OverlayOptions } from "sharp";
import { signInAda } from "./sign-in-ada.ts";

/** A page of the product; `ready` waits until it shows its content. */
type ShownPage = {
  readonly name: string;
  readonly path: string;
  readonly isSignedIn?: boolean;
  readonly ready?: (page: Page) => Promise<void>;
};

const HEIGHT = 900;
const WIDTHS = [1400, 390];
const SCHEMES = ["light", "dark"] as const;
/** A sheet shows the page at this part of its size. */
const SCALE = 0.5;
const GAP = 16;

const hasHeading = (name: string) => (page: Page) => page.getByRole("heading", { name }).first().waitFor();
const hasLoaded = async (page: Page) => {
  await page.locator("main h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
};

/** All pages, by the names of their pictures. */
const SHOWN_PAGES: readonly ShownPage[] = [
  { name: "page-start", path: "/" },
  { name: "page-sign-in", path: "/auth/sign-in" },
  { name: "page-sign-up", path: "/auth/sign-up" },
  { name: "page-account", path: "/auth/account", isSignedIn: true },
  { name: "page-guide", path: "/docs/guide/recipes" },
  { name: "page-reference", path: "/docs", ready: async (page) => page.locator(".operation").first().waitFor() },
  { name: "page-errors", path: "/docs/errors" },
  { name: "page-error", path: "/nowhere" },
  {
    name: "studio-tables",
    path: "/studio/tables/public/articles",
    ready: async (page) => page.getByRole("gridcell").nth(8).waitFor(),
  },
  { name: "studio-sql", path: "/studio/sql", ready: hasLoaded },
  { name: "studio-schema", path: "/studio/schema", ready: hasLoaded },
  { name: "studio-access", path: "/studio/access", ready: hasLoaded },
  { name: "studio-files", path: "/studio/files", ready: hasLoaded },
  { name: "studio-people", path: "/studio/people/users", ready: hasLoaded },
  { name: "studio-templates", path: "/studio/people/templates/invitation", ready: hasHeading("Preview") },
  { name: "studio-running", path: "/studio/running", ready: hasLoaded },
  { name: "studio-changes", path: "/studio/changes", ready: hasLoaded },
];

/** Takes a picture of each page, at both widths, light and dark. */
export async function takePageSheets(browser: Browser, address: string, folder: string): Promise<void> {
  for (const { name, path, isSignedIn = false, ready } of SHOWN_PAGES) {
    const context = await browser.newContext({ viewport: { width: WIDTHS[0]!, height: HEIGHT } });
    const page = await context.newPage();
    if (isSignedIn) await signInAda(page, address);
    await page.goto(address + path);
    await ready?.(page);
    await writeSheet(page, join(folder, `${name}.png`));
    await context.close();
  }
}

async function writeSheet(page: Page, file: string): Promise<void> {
  const parts: OverlayOptions[] = [];
  let left = GAP;
  for (const width of WIDTHS) {
    for (const colorScheme of SCHEMES) {
      await page.setViewportSize({ width, height: HEIGHT });
      await page.emulateMedia({ colorScheme });
      const picture = await page.screenshot({ animations: "disabled", caret: "hide" });
      const scaled = Math.round(width * SCALE);
      parts.push({ input: await sharp(picture).resize(scaled).toBuffer(), left, top: GAP });
      left += scaled + GAP;
    }
  }
  const height = HEIGHT * SCALE + 2 * GAP;
  await sharp({ create: { width: left, height, channels: 3, background: "#808080" } })
    .composite(parts)
    .png({ palette: true, colours: 96, effort: 10 })
    .toFile(file);
}
