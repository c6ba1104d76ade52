import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { until } from "../until.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const SCHEMA = `
  create table public.films (id bigint primary key, title text, year int, owner text);
  insert into public.films
    select n + 9007199254740990, '<img src=x onerror=alert(1)> ' || n, 1950 + n % 7, case when n % 2 = 0 then 'ann' else 'bob' end
    from generate_series(1, 3000) n;
  alter table public.films enable row level security;
  create policy own on public.films to authenticated using (owner = auth.jwt() ->> 'sub');
  grant select on public.films to authenticated;
  analyze public.films;`;

const editorOf = (page: Page) => page.getByRole("textbox", { name: "SQL statements" });

async function write(page: Page, sql: string): Promise<void> {
  await editorOf(page).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(sql);
  // The suggestions.
  await page.keyboard.press("Escape");
  const withoutSpaces = (text: string) => text.replace(/\s/g, "");
  await until(async () => withoutSpaces(await editorOf(page).innerText()) === withoutSpaces(sql));
}

async function run(page: Page, sql: string, button = "Run all"): Promise<void> {
  await write(page, sql);
  await page.getByRole("button", { name: button, exact: true }).click();
}

const cellsOf = (page: Page) => page.getByRole("gridcell").allTextContents();

async function waitForCells(page: Page, expected: readonly string[]): Promise<void> {
  await until(async () => JSON.stringify((await cellsOf(page)).slice(0, expected.length)) === JSON.stringify(expected));
}

describeInBrowser("the SQL page", () => {
  let page: Page;
  const studio = useFixture(() => openStudio({ path: "/studio/sql", schema: SCHEMA }));
  beforeAll(async () => {
    page = studio.page;
  });

  test("has an editor with a label, colours and completion, which Escape and Tab leave", async () => {
    const editor = editorOf(page);
    await editor.click();
    await page.keyboard.type("sele");
    await page.getByRole("option", { name: "select", exact: true }).waitFor();
    await write(page, "select 1 as one");
    const colourOf = (text: string) =>
      editor
        .locator("span", { hasText: text })
        .first()
        .evaluate((element) => getComputedStyle(element).color);
    expect(await colourOf("select")).not.toBe(await colourOf("1"));
    await page.keyboard.press("Escape");
    await page.keyboard.press("Shift+Tab");
    expect(await editor.evaluate((element) => element.contains(document.activeElement))).toBe(false);
  });

  test("completes tables, and columns of the tables of the statement, also after an alias", async () => {
    await write(page, "select  from films f");
    await page.keyboard.press("Home");
    for (let place = 0; place < "select ".length; place++) await page.keyboard.press("ArrowRight");
    await page.keyboard.type("ti");
    await page.getByRole("option", { name: /^title ?text · films/ }).waitFor();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("select * from films f where f.");
    await expect.poll(() => page.getByRole("option", { name: /^year/ }).isVisible()).toBe(true);
    await page.keyboard.press("Escape");
  });

  test("runs all statements, and shows values as they are", async () => {
    await run(page, "create temp table t (); select id, title from films order by id limit 2");
    await waitForCells(page, [
      "9007199254740991",
      "<img src=x onerror=alert(1)> 1",
      "9007199254740992",
      "<img src=x onerror=alert(1)> 2",
    ]);
    const results = page.getByLabel("Results", { exact: true }).locator("option");
    expect((await results.allTextContents()).map((text) => text.trim())).toEqual(["1: CREATE TABLE", "2: SELECT 2"]);
  });

  test("runs the statement at the cursor, or the selection, by keyboard", async () => {
    await write(page, "select 'first';\n\nselect 'second';");
    await page.keyboard.press("ControlOrMeta+Enter");
    await waitForCells(page, ["second"]);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ControlOrMeta+Enter");
    await waitForCells(page, ["first"]);
    await write(page, "select 1, 'part'");
    for (let place = 0; place < ", 'part'".length; place++) await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Shift+Home");
    await page.keyboard.press("ControlOrMeta+Enter");
    await waitForCells(page, ["1"]);
    expect((await cellsOf(page)).length).toBe(1);
  });

  test("limits the rows, and shows the limit", async () => {
    await page.getByLabel("Rows", { exact: true }).selectOption("100 rows");
    await run(page, "select id from films");
    await expect.poll(() => page.getByText("Only the first 100 rows are shown.").isVisible()).toBe(true);
    await page.getByLabel("Rows", { exact: true }).selectOption("1,000 rows");
  });

  test("underlines the place of an error, and shows what Postgres says", async () => {
    await run(page, "select 1;\nselect titel from films");
    const alert = page.getByRole("alert");
    await alert.getByText('column "titel" does not exist').waitFor();
    await alert.getByText("Line 2, column 8 · SQLSTATE 42703").waitFor();
    await alert.getByText('Perhaps you meant to reference the column "films.title".').waitFor();
    expect(await page.locator(".cm-lintRange-error").textContent()).toBe("titel");
    await editorOf(page).click();
    await page.keyboard.press("ControlOrMeta+Home");
    await page.keyboard.type("-");
    await until(async () => (await page.locator(".cm-lintRange-error").count()) === 0);
  });

  test("runs as a role, and as the caller who is viewed as", async () => {
    await page.getByLabel("Run as").selectOption("Role authenticated");
    await run(page, "select count(*), current_user from films");
    await waitForCells(page, ["0", "authenticated"]);
    await page.getByLabel("Run as").selectOption("The owner");
    await run(page, "select count(*) from films");
    await waitForCells(page, ["3000"]);
    await page.getByRole("button", { name: "View as…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "authenticated" }).click();
    await until(async () => (await page.getByLabel("Run as").inputValue()) === "viewed");
    await run(page, "select current_user");
    await waitForCells(page, ["authenticated"]);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await until(async () => (await page.getByLabel("Run as").inputValue()) === "owner");
    const bodies = studio.requests.filter(({ url }) => url.endsWith("/admin/v1/sql")).map(({ body }) => body ?? "");
    expect(bodies.some((body) => body.includes('"as":{"role":"authenticated"}'))).toBe(true);
  });

  test("shows the plan as a picture with the slow node marked, and changes nothing", async () => {
    await run(page, "delete from films where year in (select max(year) from films)", "Analyze");
    const nodes = page.locator(".plan-node");
    await nodes.first().waitFor();
    expect(await nodes.count()).toBeGreaterThan(3);
    expect(await page.getByText("slowest", { exact: true }).count()).toBe(1);
    await nodes.first().click();
    await page.getByRole("region", { name: "Details of the node" }).getByRole("heading", { name: "Delete" }).waitFor();
    await page.getByRole("button", { name: "Text", exact: true }).click();
    await page.getByText(/^Delete on films/).waitFor();
    expect(await studio.sql("select from films")).toHaveLength(3000);
    // All columns: no index has them, whatever autovacuum has done.
    await run(page, "select * from films", "Explain");
    await page.getByRole("button", { name: /Seq Scan.*[\d,]+ rows estimated/ }).waitFor();
  });

  test("shows a chart, whose columns can be chosen", async () => {
    await run(page, "select owner, year, count(*) from films group by 1, 2 order by 1, 2");
    await page.getByRole("button", { name: "Chart", exact: true }).click();
    await page.getByRole("img", { name: "year, count by owner" }).waitFor();
    expect(await page.locator("rect.chart-bar").count()).toBe(28);
    await page.getByLabel("Horizontal").selectOption("year");
    await page.getByLabel("Chart", { exact: true }).selectOption("Points");
    await page.getByRole("img", { name: "count by year" }).waitFor();
    expect(await page.locator("circle.chart-dot").count()).toBe(14);
  });

  test("draws a chart as wide as there is room, with fewer names where it is narrow", async () => {
    await run(page, "select 'film ' || n as film, n as number from generate_series(1, 30) n");
    await page.getByRole("button", { name: "Chart", exact: true }).click();
    const chart = page.getByRole("img", { name: "number by film" });
    await chart.waitFor();
    const widths = () =>
      chart.evaluate((element) => {
        const { width, height } = element.getBoundingClientRect();
        const [, , drawn] = element.getAttribute("viewBox")!.split(" ");
        return { drawn: Number(drawn), shown: width, room: element.parentElement!.clientWidth, height };
      });
    const names = () => chart.locator("text[text-anchor=middle]").count();
    const seen: { width: number; names: number }[] = [];
    for (const width of [1300, 1800, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await until(async () => (await widths()).shown === (await widths()).room);
      const { drawn, shown, height } = await widths();
      expect([drawn, height]).toEqual([shown, 360]);
      seen.push({ width: drawn, names: await names() });
    }
    const [usual, large, phone] = seen as [(typeof seen)[0], (typeof seen)[0], (typeof seen)[0]];
    expect(large.width).toBeGreaterThan(usual.width + 400);
    expect(phone.width).toBeLessThan(390);
    expect([phone.names < usual.names, large.names >= usual.names]).toEqual([true, true]);
    await page.setViewportSize({ width: 1300, height: 900 });
  });

  test("saves results as CSV, with formulas as text only if it is chosen", async () => {
    await run(page, "select '=1+1' as formula");
    const save = async (item: string) => {
      await page.getByRole("button", { name: "Download" }).click();
      const download = page.waitForEvent("download");
      await page.getByRole("menuitem", { name: item, exact: true }).click();
      return readFile(await (await download).path(), "utf8");
    };
    expect(await save("CSV")).toBe("formula\r\n=1+1\r\n");
    expect(await save("CSV for spreadsheets (formulas as text)")).toBe("formula\r\n'=1+1\r\n");
    expect(await save("JSON")).toBe('[\n  { "formula": "=1+1" }\n]\n');
  });

  test("cancels a running statement", async () => {
    await run(page, "select pg_sleep(600)");
    await page.getByText(/^Running for/).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("The statement was cancelled.").waitFor();
    await expect
      .poll(
        async () =>
          (await studio.sql("select from pg_stat_activity where query = 'select pg_sleep(600)'")).length === 0,
      )
      .toBe(true);
  });

  test("keeps queries and the history in the browser", async () => {
    await run(page, "select 'kept'");
    await waitForCells(page, ["kept"]);
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Save", exact: true }).click();
    await page.getByLabel("Name").fill("Kept query");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Kept query", exact: true }).waitFor();
    await page.reload();
    await until(async () => (await editorOf(page).textContent()) === "select 'kept'");
    await page.getByRole("button", { name: "New query" }).click();
    await until(async () => (await editorOf(page).textContent()) === "");
    await page.getByRole("button", { name: "History" }).click();
    await page.getByLabel("Search").fill("KEPT");
    const entries = page.getByRole("dialog").getByRole("listitem");
    expect(await entries.count()).toBe(1);
    await entries.getByRole("button", { name: "Run again" }).click();
    await waitForCells(page, ["kept"]);
    await page.getByRole("button", { name: "Close Query 2" }).click();
    expect(await page.getByRole("button", { name: /^Close / }).count()).toBe(1);
  });

  test("shares a saved query with other administrators", async () => {
    await page.evaluate(() =>
      localStorage.setItem("studio.sql.saved", JSON.stringify([{ name: "Shared", text: "select 'shared'" }])),
    );
    await page.reload();
    const openSaved = async (at: Page) => {
      await at.getByRole("button", { name: "More" }).click();
      await at.getByRole("menuitem", { name: "Saved queries" }).click();
    };
    await openSaved(page);
    await page.getByRole("button", { name: "Share", exact: true }).click();
    await until(async () => (await studio.sql("select from content_service.shared_queries")).length === 1);
    const other = await (await studio.browser.newContext()).newPage();
    await other.goto(`${studio.service.url}/studio/sql`);
    await openSaved(other);
    await other.getByRole("region", { name: "Shared", exact: true }).waitFor();
    await other.getByRole("button", { name: "Run again" }).click();
    await waitForCells(other, ["shared"]);
    await openSaved(other);
    await other.getByRole("button", { name: "Remove" }).click();
    await expect.poll(() => other.getByText("No query is shared yet.").isVisible()).toBe(true);
    await other.close();
    await page.keyboard.press("Escape");
  });

  test("opens the query of a link without running it", async () => {
    const linked = await studio.open(`/studio/sql?${new URLSearchParams({ query: "select 'linked'" })}`);
    await until(async () => (await editorOf(linked).textContent()) === "select 'linked'");
    expect(new URL(linked.url()).search).toBe("");
    await linked.getByText("Run a statement to see its result.").waitFor();
    await linked.close();
  });

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    const views = [
      ["select id, title from films limit 20", "Run all", ".grid"],
      ["select year from films group by year", "Analyze", ".plan-node"],
    ] as const;
    for (const [sql, button, shown] of views) {
      await run(page, sql, button);
      await page.locator(shown).first().waitFor();
      await expectAccessibleLayouts(page, `sql${shown}`);
      await page.setViewportSize({ width: 1300, height: 900 });
    }
  });
});
