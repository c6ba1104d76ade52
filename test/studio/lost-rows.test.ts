import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { launchBrowser, STEP_TIMEOUT_MS } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { startArchivedService } from "../operations/admin/archived-service.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { describeInBrowser, openStudio, signIn } from "./studio.ts";

const UNTIL_FOUND = { timeout: STEP_TIMEOUT_MS };

describeInBrowser("lost rows on the page of changes", () => {
  let page: Page;
  const service = useFixture(startArchivedService);
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  });

  test("are listed by table, and come back after a question", async () => {
    await service.query(`create table public.notes (id int primary key, body text);
      insert into public.notes select n, 'note ' || n from generate_series(1, 100) n; create table public.gone ()`);
    const at = await service.passTime();
    await service.query(`delete from public.notes where id = 1; update public.notes set body = 'changed' where id = 2;
      drop table public.gone`);
    await page.goto(`${service.url}/studio/changes?tab=lost-rows`);
    await signIn(page);
    await page.getByText(/^From .* to .*, or such as 10 minutes ago\.$/).waitFor();
    const time = page.getByLabel("Time");
    expect(await time.inputValue()).toBe("10 minutes ago");
    await time.fill("soon");
    await page.getByRole("button", { name: "Find lost rows" }).click();
    await page.getByRole("alert").getByText("Specify a time such as").waitFor();
    await time.fill(at);
    await page.keyboard.press("Enter");
    await page.getByText(/^As of .*: \d+ of \d+ tables are as they were\.$/).waitFor(UNTIL_FOUND);
    await page.getByText("1 row missing here").waitFor();
    await page.getByText("1 row different").waitFor();
    await page.getByText('"body": "note 1"').or(page.getByText('"body":"note 1"')).first().waitFor();
    await page.getByText('"public"."gone" is dropped.').waitFor();
    await expectAccessibleLayouts(page, "lost-rows");
    await page.getByRole("button", { name: "Bring rows back" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("checkbox", { name: "Overwrite the different rows, too" }).check();
    await dialog.getByRole("button", { name: "Bring rows back" }).click();
    await page.getByText("1 row inserted, 1 overwritten.").waitFor(UNTIL_FOUND);
    expect(await service.query("select body from public.notes where id < 3 order by id")).toEqual([
      { body: "note 1" },
      { body: "note 2" },
    ]);
  });

  test("need a WAL archive", async () => {
    const studio = await openStudio({ path: "/studio/changes?tab=lost-rows" });
    await studio.page.getByText("Only the embedded Postgres is restored to a time here.").waitFor();
    await studio.page.getByText("npm run restore -- --lost").waitFor();
    expect(await studio.page.getByRole("button", { name: "Find lost rows" }).count()).toBe(0);
    await studio.close();
  });
});
