import pg from "pg";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { makeFunctionsProject } from "../rest-gateway/functions/project.ts";
import { until } from "../until.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

describeInBrowser("the page of what is running", () => {
  let page: Page;
  const project = useFixture(() =>
    makeFunctionsProject({
      "../config.toml": "[functions.writer]\nverify_jwt = false",
      "writer/index.ts": "Deno.serve(() => { console.warn('<b>careful</b>'); return new Response('written'); });",
    }),
  );
  const studio = useFixture(() =>
    openStudio({
      path: "/studio/running",
      schema: `create table public.counters (amount integer);
        insert into public.counters values (0);
        create function public.tidy_up() returns void language sql as '';
        grant execute on function public.tidy_up to service_role`,
      settings: { SCHEDULES: "false", WEBHOOKS: "false", FUNCTIONS_DIR: project.folder },
    }),
  );
  beforeAll(async () => {
    page = studio.page;
    await page.getByRole("img", { name: /^Requests per second\./ }).waitFor();
  });

  const connect = async (name: string) => {
    const client = new pg.Client({ connectionString: studio.database.ownerUrl, application_name: name });
    await client.connect();
    return client;
  };
  const region = (name: string) => page.getByRole("region", { name, exact: true });

  test("draws the last half hour, with the figures as text", async () => {
    await page.getByRole("img", { name: /^Memory of the service\. all processes: \d/ }).waitFor();
    const names = await page
      .getByRole("img")
      .evaluateAll((images) => images.map((image) => image.getAttribute("aria-label")));
    expect(names.map((name) => name!.split(".", 1)[0])).toEqual([
      "Requests per second",
      "Response time",
      "Connections of the service to Postgres",
      "Processor time of the service",
      "Memory of the service",
      "Realtime and subscriptions",
      "Tasks",
    ]);
    expect(names[2]).toMatch(/open: \d+ now, \d+ at most\. active: \d+ now/);
    // Its own requests are counted.
    await until(async () => (await region("Requests of the last minute").first().textContent())!.includes("admin"));
  });

  test("shows at opening what was measured before, on axes with units and times", async () => {
    const lineOf = (opened: Page) =>
      opened.getByRole("img", { name: /^Memory of the service\. all/ }).locator(".chart-line");
    const countOf = async (opened: Page) => ((await lineOf(opened).getAttribute("d"))!.match(/L/g) ?? []).length;
    await until(async () => (await countOf(page)) > 0);
    const later = await studio.open("/studio/running");
    await lineOf(later).waitFor();
    expect(await countOf(later)).toBeGreaterThan(0);
    const labelsOf = (title: RegExp) =>
      later.getByRole("img", { name: title }).locator(".chart-tick").allTextContents();
    const trimmed = async (title: RegExp) => (await labelsOf(title)).map((label) => label.trim());
    expect((await trimmed(/^Memory/)).slice(0, 2)).toEqual([expect.stringMatching(/^[\d,]+ [MG]B$/), "0 B"]);
    expect((await trimmed(/^Response time/)).slice(0, 2)).toEqual([expect.stringMatching(/^[\d.,]+ m?s$/), "0 ms"]);
    expect((await trimmed(/^Requests/)).slice(0, 2)).toEqual([expect.stringMatching(/\/s$/), "0/s"]);
    const [first] = (await trimmed(/^Memory/)).slice(2);
    expect(first).toMatch(/^\d\d:\d\d(:\d\d)?$/);
    await later.getByText("since this page was opened").waitFor();
    await later.close();
  });

  test("says that nothing is measured yet", async () => {
    const opened = await studio.open("/studio/nowhere");
    await opened.route("**/admin/v1/running", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), samples: [] } });
    });
    await opened.goto(`${studio.service.url}/studio/running`);
    await opened.getByRole("img", { name: "Memory of the service. No values yet" }).waitFor();
    expect(await opened.getByRole("img", { name: /^Memory/ }).textContent()).toContain("No values yet");
    await opened.unrouteAll({ behavior: "ignoreErrors" });
    await opened.close();
  });

  test("links errors to their explanation", async () => {
    expect((await fetch(`${studio.service.url}/users/999999999`)).status).toBe(404);
    const link = page.getByRole("link", { name: "USER_NOT_FOUND" });
    await link.waitFor();
    expect(await link.getAttribute("href")).toBe("/docs/errors#USER_NOT_FOUND");
  });

  test("shows who waits for whose lock, and cancels a statement by keyboard", async () => {
    const [first, second] = [await connect("the first"), await connect("the second")];
    try {
      await first.query("begin; update public.counters set amount = 1");
      const waits = second
        .query("\n\n  update public.counters set amount = 2")
        .catch((error: pg.DatabaseError) => error.code);
      const tree = region("Waiting for locks");
      await tree.getByText("blocks 1 session").waitFor();
      expect(await tree.locator("> .lock-tree > li > .lock-line").textContent()).toContain("the first");
      const waiter = tree.locator(".lock-tree .lock-tree .lock-line");
      expect(await waiter.textContent()).toMatch(/the second.*waits for.*update public\.counters set amount = 2/s);
      expect(await waiter.locator(".statement").textContent()).toBe("update public.counters set amount = 2");
      await waiter.getByRole("button", { name: /^Cancel/ }).focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog");
      expect(await dialog.textContent()).toContain("update public.counters set amount = 2");
      await dialog.getByRole("button", { name: "Cancel the statement" }).press("Enter");
      expect(await waits).toBe("57014");
      await page.getByText(/^Postgres was asked to cancel/).waitFor();
      await region("Idle in a transaction").getByText("the first").first().waitFor();
    } finally {
      await Promise.all([first.end(), second.end()]);
    }
  });

  test("shows the text of a hostile statement as text", async () => {
    const client = await connect("<img src=x onerror=alert(1)>");
    try {
      const sleeping = client.query("select pg_sleep(60), '<script>alert(1)</script>'").catch(() => {});
      await region("Running statements").first().getByText("<script>alert(1)</script>").waitFor();
      await expect
        .poll(() => region("Running statements").first().getByText("<img src=x onerror=alert(1)>").isVisible())
        .toBe(true);
      await studio.sql("select pg_cancel_backend(pid) from pg_stat_activity where query like 'select pg_sleep(60)%'");
      await sleeping;
    } finally {
      await client.end();
    }
  });

  test("shows schedules with their runs, and webhooks with what waits", async () => {
    await studio.sql(`insert into api.schedules (name, cron, function, role)
      values ('nightly', '30 3 * * *', 'public.tidy_up', 'service_role')`);
    await studio.sql(`insert into api.schedule_runs (schedule, planned_at, status, started_at, finished_at, error)
      values ('nightly', now(), 'failed', now() - interval '3 s', now(), '{"message": "No rows are left"}')`);
    await studio.sql(`insert into api.webhooks (name, table_name, url, role)
      values ('orders', 'public.counters', 'https://hooks.example.com/T0/hunter2', 'service_role')`);
    await studio.sql("insert into public.counters select 1 from generate_series(1, 1200)");
    await studio.sql(
      "update api.webhooks set is_enabled = false, disabled_because = 'The response has the status 410'",
    );
    const cellsOf = (name: string, row: string) =>
      region(name).getByRole("row").filter({ hasText: row }).locator("th, td").allTextContents();
    await region("Webhooks").getByRole("rowheader", { name: "orders" }).waitFor();
    expect(await cellsOf("Webhooks", "orders")).toEqual([
      ...["orders", "public.counters INSERT, UPDATE, DELETE", "https://hooks.example.com", "disabled", "1,200"],
      ...[expect.stringMatching(/^\d.* m?s$/), "never", "0", "The response has the status 410"],
      expect.stringContaining("Enable"),
    ]);
    const schedule = await cellsOf("Schedules", "nightly");
    expect(schedule.slice(0, 2)).toEqual(["nightly", "30 3 * * * UTC"]);
    expect(schedule[3]).toBe("waits");
    expect(schedule[4]).toMatch(/^failed \d{4}-/);
    expect(schedule.slice(5, 7)).toEqual(["3 s", "No rows are left"]);
    expect(await page.content()).not.toContain("hunter2");
  });

  test("makes, changes, runs and deletes a schedule by a form", async () => {
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "New schedule" }).click();
    await dialog.getByLabel("Name").fill("tidy");
    await dialog.getByLabel("Cron").fill("61 3 * * *");
    await dialog.getByLabel("Function").selectOption("public.tidy_up");
    await dialog.getByRole("button", { name: "Save" }).click();
    // Postgres checks it, and its message says how to write it.
    await dialog.getByText(/minute of a cron text/).waitFor();
    await dialog.getByLabel("Cron").fill("15 3 * * *");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const read = () => studio.sql("select cron, role, catch_up, is_enabled from api.schedules where name = 'tidy'");
    expect(await read()).toEqual([{ cron: "15 3 * * *", role: "service_role", catch_up: false, is_enabled: true }]);
    const button = (name: string) => region("Schedules").getByRole("button", { name: `${name} tidy`, exact: true });
    await button("Change").click();
    await until(async () => (await dialog.getByLabel("Cron").inputValue()) === "15 3 * * *");
    await dialog.getByLabel("Time zone").fill("Europe/Berlin");
    await dialog.getByLabel(/^Run once more/).check();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await studio.sql("select time_zone, catch_up from api.schedules where name = 'tidy'")).toEqual([
      { time_zone: "Europe/Berlin", catch_up: true },
    ]);
    await button("Run now").click();
    await until(async () => (await studio.sql("select from api.schedule_runs where schedule = 'tidy'")).length === 1);
    await button("Disable").click();
    await button("Enable").waitFor();
    await button("Delete").click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await read()).toEqual([]);
  });

  test("makes a webhook by a form, and shows its secret", async () => {
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "New webhook" }).click();
    await dialog.getByLabel("Name").fill("counted");
    await dialog.getByLabel("Table").selectOption("public.counters");
    await dialog.getByLabel("Address").fill("https://hooks.example.com/counted");
    await dialog.getByLabel("DELETE").uncheck();
    await dialog.getByRole("button", { name: "Save" }).click();
    const secret = dialog.getByRole("group", { name: "Secret of the webhook" });
    await secret.waitFor();
    const [row] = await studio.sql("select secret, events, url from api.webhooks where name = 'counted'");
    expect(row).toMatchObject({ events: ["INSERT", "UPDATE"], url: "https://hooks.example.com/counted" });
    expect(await secret.textContent()).toBe(row!.secret);
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await region("Webhooks").getByRole("rowheader", { name: "counted" }).waitFor();
  });

  test("searches the last requests", async () => {
    const id = "a-request-that-is-searched-for";
    await fetch(`${studio.service.url}/users/999999999?email=private`, { headers: { "X-Request-Id": id } });
    const found = region("Search requests").getByRole("row").filter({ hasText: id });
    await page.getByLabel("Id, method or path").fill("searched-for");
    await page.getByRole("button", { name: "Search again" }).click();
    await found.waitFor();
    expect(await found.textContent()).toMatch(/GET \/users\/999999999\s*400/);
    expect(await found.textContent()).not.toContain("private");
    await region("Search requests").getByLabel("Status").selectOption("5");
    await page.getByText("No request matches.").waitFor();
    await region("Search requests").getByLabel("Status").selectOption("4");
    await found.waitFor();
  });

  test("shows what functions have written", async () => {
    const log = region("Log of functions");
    await log.getByText("No function has written anything.").waitFor();
    await fetch(`${studio.service.url}/functions/v1/writer`);
    const line = log.getByRole("row").filter({ hasText: "<b>careful</b>" });
    await until(async () => {
      await log.getByRole("button", { name: "Read again" }).click();
      return (await line.count()) > 0;
    });
    expect(await line.textContent()).toMatch(/writer\s*warn/);
  });

  test("keeps its history while other pages are shown, and asks no more when it is paused", async () => {
    const count = () => studio.requests.filter(({ url }) => url.includes("/admin/v1/running")).length;
    await page.getByRole("button", { name: "Pause" }).click();
    const link = (name: string) => page.getByRole("navigation", { name: "Studio" }).getByRole("link", { name });
    await link("Access").click();
    await page.getByRole("heading", { name: "Access", level: 1 }).waitFor();
    const before = count();
    await link("Running").click();
    await page.getByRole("img", { name: /^Requests per second\./ }).waitFor();
    expect(count()).toBe(before);
    await page.getByRole("button", { name: "Pause" }).click();
    await until(() => count() > before);
  });

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    await expectAccessibleLayouts(page, "running");
  });
});
