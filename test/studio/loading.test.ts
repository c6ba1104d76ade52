import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const SCHEMA = `
  create table public.films (id int primary key, title text);
  insert into public.films values (1, 'M'), (2, 'Metropolis');
  grant select on public.films to admin`;

type LoadedFile = { readonly path: string; readonly isCached: boolean };

describeInBrowser("Studio is loaded", () => {
  const studio = useFixture(() => openStudio({ schema: SCHEMA, settings: { STUDIO_SQL: "on" } }));

  const firstRow = (page: Page) => page.locator(".grid-row", { hasText: "Metropolis" }).waitFor();

  /** The files of Studio that the page has loaded. */
  const filesOf = (page: Page) =>
    page.evaluate<LoadedFile[]>(`performance.getEntriesByType("resource")
      .filter(({ name }) => name.includes("/studio/app"))
      .map(({ name, transferSize }) => ({ path: new URL(name).pathname, isCached: transferSize === 0 }))`);

  test("by at most 12 requests and 450 kB until the first table is shown", async () => {
    // Another browser context, which has no file yet.
    const page = await studio.browser.newPage();
    const sizes: Promise<number>[] = [];
    page.on("requestfinished", (request) =>
      sizes.push(
        request.sizes().then(({ responseHeadersSize, responseBodySize }) => responseHeadersSize + responseBodySize),
      ),
    );
    await page.goto(`${studio.service.url}/studio/tables/public/films`);
    await firstRow(page);
    const taken = await Promise.all(sizes);
    expect(taken.length).toBeGreaterThan(5);
    expect(taken.length).toBeLessThanOrEqual(12);
    expect(taken.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(450_000);
    await page.close();
  });

  test("again without a request for its files", async () => {
    const page = await studio.open("/studio/tables/public/films");
    await firstRow(page);
    const before = await filesOf(page);
    await page.reload();
    await firstRow(page);
    const after = await filesOf(page);
    expect(after.map(({ path }) => path).sort()).toEqual(before.map(({ path }) => path).sort());
    expect(after.filter(({ isCached }) => !isCached)).toEqual([]);
    await page.close();
  });

  test("with the catalogue of all parts, which leaves the rows as they are when it is read again", async () => {
    const page = await studio.open("/studio/tables/public/films");
    await firstRow(page);
    const sent = (part: string) => studio.requests.filter(({ url }) => url.includes(part)).length;
    const [reads, catalogs] = [sent("/rest/v1/films?select"), sent("/admin/v1/catalog")];
    await studio.sql("create table public.newcomers (id int primary key)");
    await page.getByRole("button", { name: "View as…" }).click();
    await page.getByRole("link", { name: /^newcomers/, includeHidden: true }).waitFor();
    expect([sent("/rest/v1/films?select"), sent("/admin/v1/catalog")]).toEqual([reads, catalogs + 1]);
    await page.close();
  });

  test("without the editor, until one is shown", async () => {
    const hasEditor = async (page: Page) => (await filesOf(page)).some(({ path }) => path.endsWith("/code-mirror.js"));
    const page = await studio.open("/studio/tables/public/films");
    await firstRow(page);
    expect(await hasEditor(page)).toBe(false);
    await page.getByRole("link", { name: "SQL" }).click();
    await page.locator(".cm-editor").first().waitFor();
    expect(await hasEditor(page)).toBe(true);
    await page.close();
  });
});
