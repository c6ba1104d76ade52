import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { expectAccessible, expectAccessibleLayouts } from "../page-layouts.ts";
import { until } from "../until.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const PLATFORM = { template: "platform", settings: { BASE_SCHEMA: "platform" } } as const;

const dialogOf = (page: Page) => page.getByRole("dialog");
const field = (page: Page, label: string): Locator => dialogOf(page).getByLabel(label, { exact: true });
const press = (page: Page, name: string) => dialogOf(page).getByRole("button", { name, exact: true }).click();

async function openForm(page: Page, subject: string, item: string): Promise<void> {
  await page.getByRole("button", { name: `Change ${subject}`, exact: true }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
  await dialogOf(page).waitFor();
}

/** Goes from the form to the applied change. */
async function apply(page: Page, button = "Write to the current migration"): Promise<void> {
  await press(page, "Review");
  await dialogOf(page).getByText("Dry run: it succeeds").waitFor();
  await press(page, button);
  await dialogOf(page).waitFor({ state: "detached" });
}

describeInBrowser("the forms of the schema, without npm run dev", () => {
  const openNewTable = async (page: Page, name: string) => {
    await page.getByRole("button", { name: "New table" }).click();
    await field(page, "Name").first().fill(name);
  };

  test("run the SQL where the project has no migrations", async () => {
    const schema = `create table public.members (org_id int, user_id bigint);
      create table public.plans (id int primary key, org_id int)`;
    const studio = await openStudio({ path: "/studio/schema", schema, ...PLATFORM });
    const { page } = studio;
    await openNewTable(page, "things");
    const columns = page.getByRole("group", { name: "Columns" }).and(page.locator(".scroll-x"));
    expect(await columns.evaluate((view) => view.scrollWidth - view.clientWidth)).toBe(0);
    await apply(page, "Run");
    await page.getByRole("heading", { name: "things" }).waitFor();
    expect(await studio.sql("select to_regclass('public.things') is not null as created")).toEqual([{ created: true }]);
    await page.goto(`${studio.service.url}/studio/schema/table/public/plans`);
    await openForm(page, "plans", "New policy");
    await field(page, "Template").selectOption("members read and write");
    await apply(page, "Run");
    expect(await studio.sql("select policyname::text as name from pg_policies where tablename = 'plans'")).toEqual([
      { name: "all_members" },
    ]);
    await studio.close();
  });

  test("say why they cannot, and show the SQL and its dry run, where there are migrations", async () => {
    const folder = await mkdtemp(join(tmpdir(), "project-"));
    await mkdir(join(folder, "current"));
    await writeFile(join(folder, "current/0010-other.sql"), "select 1;\n");
    const studio = await openStudio({
      path: "/studio/schema",
      template: "platform",
      settings: { ...PLATFORM.settings, MIGRATIONS_DIR: folder },
    });
    const { page } = studio;
    await openNewTable(page, "things");
    await press(page, "Review");
    await dialogOf(page).getByText("Dry run: it succeeds").waitFor();
    await dialogOf(page).getByText("npm run dev, or copy the SQL").waitFor();
    await dialogOf(page)
      .getByText(/current\/0020-create-table-things\.sql$/)
      .waitFor();
    const download = page.waitForEvent("download");
    await press(page, "Save the file");
    const saved = await download;
    expect(saved.suggestedFilename()).toBe("0020-create-table-things.sql");
    expect(await readFile(await saved.path(), "utf8")).toMatch(
      /^create table if not exists "public"\."things" \(.*;\n$/s,
    );
    expect(await readdir(join(folder, "current"))).toEqual(["0010-other.sql"]);
    await expectAccessible(page);
    expect(await dialogOf(page).getByRole("button", { name: "Run", exact: true }).isDisabled()).toBe(true);
    expect(await studio.sql("select to_regclass('public.things') as things")).toEqual([{ things: null }]);
    await studio.close();
    await rm(folder, { recursive: true });
  });
});

describeInBrowser("the forms of the schema, under npm run dev", () => {
  const files = async () => (await readdir(join(folder, "current")).catch(() => [])).sort();
  const lastFile = async () => readFile(join(folder, "current", (await files()).at(-1)!), "utf8");

  const folder = useFolder("project-");
  const settings = { ...PLATFORM.settings, MIGRATIONS_DIR: folder };
  const studio = useFixture(() =>
    openStudio({ settings, isDevelopment: true, template: "platform", path: "/studio/schema" }),
  );

  test("create a table with its policies: a file of the current migration, and its rows can be edited at once", async () => {
    const { page } = studio;
    await page.getByRole("button", { name: "New table" }).click();
    await field(page, "Name").first().fill("notes");
    await press(page, "Add column");
    await page.locator(".column-grid tr:last-child input:focus").waitFor();
    await page.keyboard.type("title");
    expect(await field(page, "Name of column 2").inputValue()).toBe("title");
    expect(await field(page, "Type of column 1").inputValue()).toBe("bigint");
    await press(page, "More of title: identity, check, comment, reference");
    await field(page, "Check").fill("length(title) <= 20");
    await field(page, "Template").selectOption("owner reads and writes");
    expect(await files()).toEqual([]);
    await apply(page);
    await page.getByText("0010-create-table-notes.sql, and applied").waitFor();
    expect(await files()).toEqual(["0010-create-table-notes.sql"]);
    expect(await lastFile()).toContain('create policy "all_own" on "public"."notes"');
    expect(
      await studio.sql("select policyname::text as name from pg_policies where tablename = 'notes' order by 1"),
    ).toEqual([{ name: "admin_all" }, { name: "all_own" }]);
    await editFirstRow(page);
  });

  /** Edits a row on the page of tables, which reads and writes at /rest/v1. */
  async function editFirstRow(page: Page): Promise<void> {
    await studio.sql(`with account as (insert into auth.users (email, username) values ('owner@example.org', 'owner') returning user_id)
      insert into public.notes (title, user_id) select 'first', user_id from account`);
    await page.getByRole("link", { name: "Rows", exact: true }).click();
    await page.locator(".grid-row:not(.pending)").first().waitFor();
    await page.locator('[data-row="0"] [data-column="1"]').click();
    await page.keyboard.press("F2");
    await page.getByLabel("Value of title").fill("edited");
    await page.keyboard.press("Enter");
    await until(async () => (await studio.sql("select title from notes"))[0]!.title === "edited");
    await page.goBack();
  }

  test("add a column, and change its type, default and name", async () => {
    const { page } = studio;
    await openForm(page, "notes", "Add column");
    await field(page, "Name").fill("stars");
    await field(page, "Type").fill("text");
    await field(page, "Default").fill("'1'");
    await apply(page);
    await openForm(page, "stars", "Edit…");
    await field(page, "Name").fill("rating");
    await field(page, "Type").fill("integer");
    await field(page, "Default").fill("5");
    await field(page, "Not null").check();
    await apply(page);
    expect(
      await studio.sql(`select data_type as type, column_default as default, is_nullable as nullable
        from information_schema.columns where table_name = 'notes' and column_name = 'rating'`),
    ).toEqual([{ type: "integer", default: "5", nullable: "NO" }]);
  });

  test("show an error with its place, keep no file of it, and apply the corrected and edited SQL", async () => {
    const { page } = studio;
    const before = await files();
    await openForm(page, "notes", "New check");
    await field(page, "Condition").fill("ratin > 0");
    await press(page, "Review");
    const fault = dialogOf(page).getByRole("alert");
    await fault.getByText('column "ratin" does not exist').waitFor();
    expect(await fault.textContent()).toContain("Line 2, column");
    await press(page, "Write to the current migration");
    await fault.getByText('column "ratin" does not exist').waitFor();
    expect(await files()).toEqual(before);
    await press(page, "Back");
    await field(page, "Condition").fill("rating > 0");
    await press(page, "Review");
    await dialogOf(page).getByRole("textbox", { name: "SQL" }).focus();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("\n-- At least one star.");
    await page.keyboard.press("Escape");
    await press(page, "Dry run");
    await dialogOf(page).getByText("Dry run: it succeeds").waitFor();
    await press(page, "Write to the current migration");
    await dialogOf(page).waitFor({ state: "detached" });
    expect(await files()).toHaveLength(before.length + 1);
    expect(await lastFile()).toMatch(/check \(rating > 0\);\n-- At least one star\.\n$/);
  });

  test("show the safe form of what would hold up others", async () => {
    const { page } = studio;
    await studio.sql(
      "insert into public.notes (title, user_id) select 'many', user_id from public.notes, generate_series(1, 10000)",
    );
    await openForm(page, "notes", "New check");
    await field(page, "Condition").fill("rating < 6");
    await press(page, "Review");
    await dialogOf(page).getByText("holds reads. Safe form:").waitFor();
    await expect
      .poll(() => dialogOf(page).getByText("Put this one into a migration of its own").isVisible())
      .toBe(true);
    await press(page, "Write to the current migration");
    await dialogOf(page).waitFor({ state: "detached" });
    await studio.sql("delete from public.notes where title = 'many'");
  });

  test("create indexes, policies and grants", async () => {
    const { page } = studio;
    await openForm(page, "notes", "New index");
    await field(page, "title").check();
    await apply(page);
    await openForm(page, "notes", "New policy");
    await field(page, "Template").selectOption("everybody reads");
    await apply(page);
    await openForm(page, "notes", "Privileges");
    await field(page, "select for anon").check();
    await press(page, "Review");
    await dialogOf(page).getByText("Dry run: it succeeds").waitFor();
    const anonymous = dialogOf(page).getByRole("row", { name: "anon" });
    expect(await anonymous.getByRole("cell").allTextContents()).toEqual(["may not read", "1"]);
    await press(page, "Write to the current migration");
    await dialogOf(page).waitFor({ state: "detached" });
    expect(await lastFile()).toBe('grant select on "public"."notes" to "anon";\n');
    expect((await fetch(`${studio.service.url}/api/v1/notes`)).status).toBe(200);
    expect(await studio.sql("select to_regclass('notes_title_idx') is not null as indexed")).toEqual([
      { indexed: true },
    ]);
  });

  test("say what dropping a table loses, and drop it", async () => {
    const { page } = studio;
    await openForm(page, "notes", "Drop…");
    await press(page, "Review");
    await dialogOf(page).getByText("dropped with its").waitFor();
    await press(page, "Write to the current migration");
    await dialogOf(page).waitFor({ state: "detached" });
    expect(await studio.sql("select to_regclass('public.notes') as notes")).toEqual([{ notes: null }]);
  });

  test("are accessible on a phone and on a large screen, light and dark", async () => {
    const page = await studio.open("/studio/schema");
    await page.getByRole("button", { name: "New table" }).click();
    await field(page, "Name").first().fill("things");
    await expectAccessibleLayouts(page, "new-table");
    await press(page, "Review");
    await dialogOf(page).getByText("Dry run: it succeeds").waitFor();
    await expectAccessibleLayouts(page, "reviewed-table");
    await page.keyboard.press("Escape");
    await dialogOf(page).waitFor({ state: "detached" });
    await page.close();
  });
});
