import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { expectAccessibleLayouts } from "../../page-layouts.ts";
import { until } from "../../until.ts";
import { describeInBrowser, openStudio } from "../studio.ts";

const SCHEMA = `
  create table public.films (id int primary key, title text not null, year int);
  insert into public.films values (1, 'Cléo', 1962), (2, 'Xala', 1975), (3, 'Daisies', 1966);
  insert into content_service.table_views (schema_name, table_name, name, query, saved_by)
    values ('public', 'films', 'of Alice', 'year=lt.1965', 1);
  insert into auth.users (user_id, username) values (1, 'alice');
  insert into auth.user_roles (user_id, role) values (1, 'admin');
  grant select on public.films to admin`;
const QUERY = "year=gt.1963&order=title.desc";

const titles = (page: Page) => page.locator(".grid-title").allTextContents();
const shows = (page: Page, ...ids: string[]) =>
  until(async () => {
    const cells = await page.locator(".grid-row:not(.pending)").allTextContents();
    return cells.length === ids.length && cells.every((text, index) => text.includes(ids[index]!));
  });

describeInBrowser("the views of a table", () => {
  const studio = useFixture(() =>
    openStudio({
      template: "platform",
      settings: { BASE_SCHEMA: "platform" },
      schema: SCHEMA,
      path: `/studio/tables/public/films?${QUERY}`,
    }),
  );
  const openViews = async (page: Page) => {
    await page.getByRole("button", { name: "Views", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Views of films" });
    await dialog.getByRole("listitem").first().waitFor();
    return dialog;
  };
  const saved = () =>
    studio.sql<{ name: string; query: string; columns: string[] | null }>(
      "select name, query, columns from content_service.table_views where saved_by is null",
    );

  test("have filters, order and columns, and are opened by other administrators", async () => {
    const { page } = studio;
    await shows(page, "Xala", "Daisies");
    await page.getByRole("button", { name: "Columns", exact: true }).click();
    await page.getByLabel("id", { exact: true }).uncheck();
    await page.keyboard.press("Escape");
    const dialog = await openViews(page);
    await dialog.getByLabel("Name").fill("after 1963");
    await dialog.getByRole("button", { name: "Save view" }).click();
    await dialog.getByRole("button", { name: "after 1963", exact: true }).waitFor();
    expect(await saved()).toEqual([{ name: "after 1963", query: QUERY, columns: ["title", "year"] }]);
    await expectAccessibleLayouts(page, "views");

    const other = await studio.open("/studio/tables/public/films?order=id.asc");
    await shows(other, "Cléo", "Xala", "Daisies");
    expect(await titles(other)).toEqual(["id", "title", "year"]);
    await (await openViews(other)).getByRole("button", { name: "after 1963", exact: true }).click();
    await shows(other, "Xala", "Daisies");
    expect(await titles(other)).toEqual(["title", "year"]);
    expect(new URL(other.url()).search).toBe(`?${QUERY}`);
    await other.close();
  });

  test("are replaced and deleted, except those of somebody else", async () => {
    const page = await studio.open("/studio/tables/public/films");
    await shows(page, "Cléo", "Xala", "Daisies");
    const dialog = await openViews(page);
    expect(await dialog.getByRole("button", { name: "Delete the view of Alice" }).count()).toBe(0);
    await dialog.getByLabel("Name").fill("of Alice");
    await dialog.getByRole("button", { name: "Replace view" }).click();
    await dialog.getByText("Another administrator has saved this view.").waitFor();
    await dialog.getByLabel("Name").fill("after 1963");
    await dialog.getByRole("button", { name: "Replace view" }).click();
    await until(async () => (await saved())[0]?.query === "");
    expect(await saved()).toEqual([{ name: "after 1963", query: "", columns: null }]);
    await dialog.getByRole("button", { name: "Delete the view after 1963" }).click();
    await until(async () => (await saved()).length === 0);
    await dialog.getByRole("button", { name: "of Alice", exact: true }).click();
    await shows(page, "Cléo");
    await page.close();
  });
});
