import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { writeMigration } from "../../migrate/committed-migrations.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { BACKFILL_SQL, END_BACKFILL, runSlowBackfill } from "../migrate/declared-backfill.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { until } from "../until.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const SCHEMA = `create table public.notes (id bigint primary key, note text);
  insert into public.notes select n, n::text from generate_series(1, 20000) as n;
  grant select on public.notes to anon;
  analyze public.notes`;

const openTab = (page: Page, name: string) => page.getByRole("tab", { name, exact: true }).click();

describeInBrowser("the page of changes", () => {
  let page: Page;
  const write = (name: string, sql: string) => writeFile(join(folder, "current", name), sql);
  const folder = useFolder("project-");
  beforeAll(async () => {
    await mkdir(join(folder, "current"));
    await write(
      "0010-notes.sql",
      "alter table public.notes add column likes int;\ncreate index on public.notes (note);\n",
    );
    await write("0020-drop.sql", "alter table public.notes drop column note;\n");
    await mkdir(join(folder, "committed"));
    const body =
      "create table public.tags (id int); create function public.one() returns int language sql as 'select 1';";
    const { text } = writeMigration({ previous: null, message: "tags", body });
    await writeFile(join(folder, "committed/000001-tags.sql"), text);
  });
  const studio = useFixture(() =>
    openStudio({
      path: "/studio/changes",
      template: "empty",
      schema: SCHEMA,
      settings: { BASE_SCHEMA: "none", MIGRATIONS_DIR: folder },
    }),
  );
  beforeAll(async () => {
    page = studio.page;
    await runMigrations({ name: "migrate" }, studio.service.postgres.migrate);
    await page.reload();
    await page.locator(".frame").waitFor();
  });

  test("is found by the navigation and the command palette", async () => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("changes");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Changes", level: 1 }).waitFor();
    const link = page.getByRole("navigation").getByRole("link", { name: "Changes" });
    expect(await link.getAttribute("aria-current")).toBe("page");
  });

  test("lists pending migrations with their SQL, and applied ones with their times", async () => {
    const pending = page.getByRole("region", { name: "Pending migrations" });
    const item = pending.getByText("0010-notes.sql", { exact: true });
    await item.waitFor();
    expect(await pending.getByText("not applied", { exact: true }).count()).toBe(2);
    await item.click();
    await pending.getByText("create index on public.notes (note);").waitFor();
    const applied = page.getByRole("region", { name: "Applied migrations" });
    const { length } = await studio.sql("select from graphile_migrate.histories");
    expect(await applied.getByRole("row").count()).toBe(length + 1);
    expect(await applied.getByRole("cell").nth(1).textContent()).toMatch(/^20\d\d-\d\d-\d\d \d\d:/);
    await expectAccessibleLayouts(page, "changes-pending");
  });

  test("rehearses them: the verdict, locks and safe form of each statement, and whether they can be undone", async () => {
    await openTab(page, "Rehearsal");
    await page.getByRole("checkbox", { name: "Copy all rows, too" }).check();
    await page.getByRole("button", { name: "Rehearse" }).press("Enter");
    await page.getByText("3 statements: 2 brief, 1 holds reads.").waitFor();
    const statements = page.locator(".changes-list > li");
    const index = statements.nth(1);
    await index.getByText("holds reads", { exact: true }).waitFor();
    await index.getByText("reads public.notes, 20,000 rows").waitFor();
    await index.getByText("access exclusive lock on public.notes of an earlier statement").waitFor();
    await index.getByText("Put this one into a migration of its own").waitFor();
    await statements.nth(2).getByText("It cannot be undone").waitFor();
    await expectAccessibleLayouts(page, "changes-rehearsal");
  });

  test("shows what breaks on each interface, by level, also while another tab is shown", async () => {
    await openTab(page, "Interfaces");
    await page.getByRole("button", { name: "Compare" }).click();
    await openTab(page, "Rehearsal");
    await page.getByText("3 statements").waitFor();
    await openTab(page, "Interfaces");
    const surface = page.getByRole("region", { name: "Table interface" });
    await surface.getByText("public.notes.note").first().waitFor();
    expect(await surface.getByText("compatible", { exact: true }).count()).toBeGreaterThan(0);
    await expectAccessibleLayouts(page, "changes-interfaces");
    await page.getByLabel("Show").selectOption("breaking");
    expect(await surface.getByText("compatible", { exact: true }).count()).toBe(0);
    expect(await surface.getByText("breaking", { exact: true }).count()).toBeGreaterThan(0);
    expect(new URL(page.url()).search).toContain("level=breaking");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as Markdown" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(copied).toMatch(/^## Interface changes\n[\s\S]*### Table interface\n[\s\S]*\*\*breaking\*\*/);
  });

  test("creates a branch, says which command serves it, and drops it after a question", async () => {
    await openTab(page, "Branches");
    await page.getByText("There are no branches.").waitFor();
    const dialog = page.getByRole("dialog");
    const create = async (name: string) => {
      await page.getByRole("button", { name: "Create a branch" }).click();
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByLabel("Rows").selectOption("None");
      await page.keyboard.press("Tab");
      await dialog.getByRole("button", { name: "Create a branch" }).click();
    };
    await create("Not a name");
    await dialog.getByRole("alert").getByText("name: At most 30").waitFor();
    await expectAccessibleLayouts(page, "changes-new-branch");
    await page.keyboard.press("Escape");
    await create("likes");
    await dialog.waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: "likes" });
    await row.getByText("npm start -- --branch likes").waitFor();
    await expectAccessibleLayouts(page, "changes-branches");
    await dropBranch("likes");
    await page.getByText("There are no branches.").waitFor();
    const database = `${studio.database.name}_branch_likes`;
    expect(await studio.sql("select from pg_database where datname = $1", [database])).toEqual([]);
  });

  const dropBranch = async (name: string) => {
    await page
      .getByRole("row", { name })
      .getByRole("button", { name: `Drop ${name}` })
      .press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Drop", exact: true }).click();
  };

  test("creates a branch with a sample of anonymized rows, and shows when it is complete, or why it failed", async () => {
    await studio.sql("comment on column public.notes.note is '@anonymize hash'");
    const dialog = page.getByRole("dialog");
    const create = async (name: string, percent: string) => {
      await page.getByRole("button", { name: "Create a branch" }).click();
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByLabel("Rows").selectOption("A sample");
      await dialog.getByLabel("Percent").fill(percent);
      await dialog.getByLabel("Seed").fill("7");
      await dialog.getByRole("checkbox", { name: "Replace personal values" }).check();
      await dialog.getByRole("button", { name: "Create a branch" }).click();
    };
    await create("tenth", "0");
    await dialog.getByRole("alert").getByText("A sample is a percentage above 0").waitFor();
    await expectAccessibleLayouts(page, "changes-new-sample");
    await page.keyboard.press("Escape");
    await studio.sql("begin; lock table public.notes in access exclusive mode");
    await create("tenth", "10");
    await dialog.waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: "tenth" });
    await row.getByText("being copied", { exact: true }).waitFor();
    expect(await row.getByRole("button", { name: "Drop tenth" }).isDisabled()).toBe(true);
    await studio.sql("commit");
    await row.getByText("npm start -- --branch tenth").waitFor();
    const url = studio.database.ownerUrl.replace(studio.database.name, `${studio.database.name}_branch_tenth`);
    const [copied] = await withClient(url, async (client) => {
      const { rows } = await client.query("select count(*)::int, min(length(note)) from public.notes");
      return rows;
    });
    expect(copied.count).toBeGreaterThan(1_700);
    expect(copied.count).toBeLessThan(2_300);
    expect(copied.min).toBeGreaterThan(5);
    await dropBranch("tenth");
    await studio.sql("comment on table public.notes is '@sample some'");
    await create("wrong", "10");
    const alert = page.getByRole("alert").filter({ hasText: "wrong was not created" });
    await alert.getByText("has a tag @sample that cannot be read").waitFor();
    await expectAccessibleLayouts(page, "changes-failed-branch");
    await dropBranch("wrong");
    await page.getByText("There are no branches.").waitFor();
    await studio.sql("comment on table public.notes is null; comment on column public.notes.note is null");
  });

  test("shows how far a backfill is, pauses and resumes it, and says how to continue one that was stopped", async () => {
    await openTab(page, "Backfills");
    await page.getByText("No backfill is declared").waitFor();
    await studio.sql(BACKFILL_SQL);
    await page.getByText("not started", { exact: true }).waitFor();
    await page.getByText("npm run migrate -- backfill").waitFor();
    const ended = runSlowBackfill(studio.database);
    await page.getByText(/^[\d,]+ of about 30,000 rows read, [\d,]+ filled$/).waitFor();
    await page.getByText("writes in at most 1 % of the time").waitFor();
    await page.getByRole("progressbar", { name: "Progress of public.items.cents" }).waitFor();
    await page.getByRole("button", { name: "Pause" }).press("Enter");
    await page.getByText("paused", { exact: true }).waitFor();
    await expectAccessibleLayouts(page, "changes-backfills");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("running", { exact: true }).waitFor();
    await studio.sql(END_BACKFILL);
    await ended;
    await page.getByText("stopped", { exact: true }).waitFor();
    await page.getByText("This command continues it:").waitFor();
    await expectAccessibleLayouts(page, "changes-stopped-backfill");
    await studio.sql("drop table public.items");
  });

  test("stops a rehearsal when it is told to, and when the page is left", async () => {
    await write("0030-sleep.sql", "select pg_sleep(3600);\n");
    const shadow = `${studio.database.name}_shadow`;
    const isRunning = async () => {
      const found = await studio.sql(
        "select from pg_stat_activity where datname = $1 and query like '%pg_sleep(3600)%'",
        [shadow],
      );
      return found.length > 0;
    };
    const isGone = async () => (await studio.sql("select from pg_database where datname = $1", [shadow])).length === 0;
    await openTab(page, "Rehearsal");
    await page.getByRole("checkbox", { name: "Copy all rows, too" }).uncheck();
    await page.getByRole("button", { name: "Rehearse" }).click();
    await until(isRunning);
    const other = await studio.open("/studio/changes?tab=rehearsal");
    await other.getByRole("button", { name: "Rehearse" }).click();
    await other.getByRole("alert").getByText("is used by another command").waitFor();
    await other.close();
    await page.getByRole("button", { name: "Stop" }).click();
    await until(isGone);
    await page.getByRole("button", { name: "Rehearse" }).click();
    await until(isRunning);
    await page.getByRole("navigation").getByRole("link", { name: "Running" }).click();
    await expect.poll(isGone).toBe(true);
    await rm(join(folder, "current/0030-sleep.sql"));
  });

  test("shows the place of an error", async () => {
    await write("0030-wrong.sql", "select\n  missing;\n");
    await page.goto(`${studio.service.url}/studio/changes?tab=interfaces`);
    await page.getByRole("button", { name: "Compare" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText('column "missing" does not exist').waitFor();
    expect(await alert.textContent()).toContain("0030-wrong.sql");
    await rm(join(folder, "current/0030-wrong.sql"));
  });

  test("shows the SQL that undoes it, what was changed since, and undoes it after a question", async () => {
    await rm(join(folder, "current"), { recursive: true });
    await page.goto(`${studio.service.url}/studio/changes`);
    const section = page.getByRole("region", { name: "Undo the last migration" });
    const find = section.getByRole("button", { name: "Find the SQL" });
    const undo = section.getByRole("button", { name: "Undo", exact: true });
    await studio.sql("create or replace function public.one() returns int language sql as 'select 2'");
    await find.click();
    await section.getByText("function public.one() differs from the migrations").waitFor();
    await section.getByText("npm run migrate -- undo --yes --force").waitFor();
    expect(await undo.count()).toBe(0);
    await expectAccessibleLayouts(page, "changes-undo-forced");
    await studio.sql("create or replace function public.one() returns int language sql as 'select 1'");
    await find.click();
    await section.getByText("drop table public.tags;").waitFor();
    await section.getByText("What was written to these is lost: table public.tags.").waitFor();
    await undo.click();
    const dialog = page.getByRole("dialog");
    await expectAccessibleLayouts(page, "changes-undo");
    await studio.sql("alter table public.tags add column name text");
    await dialog.getByRole("button", { name: "Undo" }).click();
    await dialog.getByRole("alert").getByText("nothing is undone").waitFor();
    await studio.sql("alter table public.tags drop column name");
    await dialog.getByRole("button", { name: "Undo" }).click();
    await page.getByText(/000001-tags\.sql is undone\./).waitFor();
    await page
      .getByRole("region", { name: "Pending migrations" })
      .getByText("000001-tags.sql", { exact: true })
      .waitFor();
    expect(await section.count()).toBe(0);
    expect(await studio.sql("select to_regclass('public.tags') as tags")).toEqual([{ tags: null }]);
  });
});

describeInBrowser("the page of changes in development, and where SQL is off", () => {
  const folder = useFolder("project-");
  beforeAll(async () => {
    await mkdir(join(folder, "current"));
    await writeFile(
      join(folder, "current/0010-likes.sql"),
      "create table if not exists public.likes (id int primary key);\n",
    );
  });

  test("rehearses files of current/ that are applied, without rows", async () => {
    const studio = await openStudio({
      path: "/studio/changes",
      template: "empty",
      settings: { BASE_SCHEMA: "none", MIGRATIONS_DIR: folder },
      isDevelopment: true,
    });
    const { page } = studio;
    await until(async () => {
      await page.getByRole("button", { name: "Reload" }).click();
      return (await page.getByText("applied here").count()) === 1;
    });
    await openTab(page, "Rehearsal");
    expect(await page.getByRole("checkbox", { name: "Copy all rows, too" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Rehearse" }).click();
    await page.getByText("drop table public.likes;").waitFor();
    await page.getByText("On an empty database with the committed migrations").waitFor();
    await studio.close();
  });

  test("says why nothing is copied, and which command does it", async () => {
    const studio = await openStudio({
      path: "/studio/changes?tab=rehearsal",
      template: "empty",
      settings: { BASE_SCHEMA: "none", MIGRATIONS_DIR: folder, STUDIO_SQL: "off" },
    });
    const { page } = studio;
    for (const [tab, button, command] of [
      ["Rehearsal", "Rehearse", "npm run migrate -- rehearse"],
      ["Interfaces", "Compare", "npm run migrate -- diff"],
      ["Branches", "Create a branch", "npm run branch -- create NAME"],
    ] as const) {
      await openTab(page, tab);
      await page.getByText("Set STUDIO_SQL=true.").waitFor();
      await page.getByText(command).waitFor();
      expect(await page.getByRole("button", { name: button }).isDisabled()).toBe(true);
    }
    await expectAccessibleLayouts(page, "changes-refused");
    await studio.close();
  });
});
