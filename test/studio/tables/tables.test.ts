import type { Page } from "playwright-core";
import { afterEach, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { expectAccessibleLayouts } from "../../page-layouts.ts";
import { until } from "../../until.ts";
import { describeInBrowser, modulePath, openStudio } from "../studio.ts";

const HOSTILE = `<img src=x onerror="document.title='run'">`;
const LONG = "long ".repeat(200);
const SCHEMA = `
  create type public.mood as enum ('glad', 'sad');
  create table public.people (
    id bigint primary key, name text not null, mood public.mood, born date, friend_id bigint references public.people);
  comment on table public.people is 'Everybody who is known.';
  insert into public.people values
    (9007199254740993, 'Ada', 'glad', '1815-12-10', null), (2, $$${HOSTILE}$$, null, null, 9007199254740993),
    (3, '', 'sad', '1912-06-23', 2), (4, $$${LONG}$$, 'sad', '1906-12-09', null);
  create table public.notes (
    id int generated always as identity primary key, person_id bigint references public.people, body text,
    data jsonb, tags text[], amount numeric, raw bytea);
  insert into public.notes (person_id, body, data, tags, amount, raw) values
    (9007199254740993, 'first', '{"a": 12345678901234567890}', '{x,"y,z",null}', 12345678901234567890.123456789, '\\xdead'),
    (2, E'two\\nlines', null, '{}', null, '');
  create table public.secret (id int primary key);
  create view public.glad_people as select * from public.people where mood = 'glad';
  create table public.diaries (id int primary key);
  alter table public.diaries enable row level security;
  insert into public.diaries values (1);
  create table public.letters (id int primary key, is_public boolean not null);
  alter table public.letters enable row level security;
  create policy select_public on public.letters for select using (is_public);
  grant select on public.letters to anon, admin;
  insert into public.letters values (1, true), (2, false);
  create table public.behind (id int primary key);
  insert into public.behind values (7);
  create view public.front with (security_invoker) as select * from public.behind;
  create table public.numbers (id int primary key);
  insert into public.numbers select generate_series(1, 1000);
  create table public.t10 (id int primary key); create table public.t2 (id int primary key, at timestamptz, since timestamp);
  insert into public.t2 values (1, '2026-11-22 12:34:56.123456+00', '2026-11-22 12:34:56.123456');
  grant select, insert on public.t2, public.t10 to admin;
  create schema hidden;
  create table hidden.thing (id int);
  grant usage on schema public to anon, admin;
  grant select on public.people, public.notes, public.glad_people, public.diaries to admin;
  grant select on public.glad_people to anon;
  grant select on public.front, public.numbers to admin;
  grant select on public.numbers to anon;
  analyze`;

const names = (page: Page) => page.locator(".grid-row [data-column='1']").allTextContents();
const ids = (page: Page) => page.locator(".grid-row [data-column='0']").allTextContents();
const titles = (page: Page) => page.locator(".grid-title").allTextContents();
const query = (page: Page) => decodeURIComponent(new URL(page.url()).search);

async function showsIds(page: Page, expected: string[]): Promise<void> {
  await until(async () => JSON.stringify(await ids(page)) === JSON.stringify(expected));
}

describeInBrowser("the tables of Studio", () => {
  const ALL = ["2", "3", "4", "9007199254740993"];
  let page: Page;
  const visit = async (path: string) => {
    page = await studio.open(path);
    return page;
  };
  /** Shows what the role sees. Returns when the page has been drawn with it. */
  const viewAs = async (role: string) =>
    page.evaluate(`(async () => {
      const { viewAs } = await import("${await modulePath(page, "common.js")}");
      await viewAs({ subject: { role: "${role}" }, label: "${role}" });
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    })()`);
  const studio = useFixture(() => openStudio({ template: "empty", schema: SCHEMA }));
  afterEach(() => page?.close());

  test("are listed with comments and counts, and with the reason where they cannot be read", async () => {
    await visit("/studio/tables");
    const list = page.getByRole("navigation", { name: "Tables of the database" });
    await list.getByRole("link", { name: /^people\s*~4\s*Everybody who is known\.$/ }).waitFor();
    await list.getByRole("link", { name: /secret.*The role admin may not read this table/s }).click();
    await page.getByText("grant select on public.secret to admin;").waitFor();
    await list.getByText("hidden").click();
    await list.getByRole("link", { name: /thing.*Not served by the interfaces/s }).click();
    await page.getByText("PGRST_DB_SCHEMAS").waitFor();
    await list.getByLabel("Search tables").fill("KNOWN");
    expect(await list.getByRole("link").count()).toBe(1);
  });

  test("have all values as text: none is rounded, run or confused with another", async () => {
    await visit("/studio/tables/public/people");
    await showsIds(page, ALL);
    expect(await names(page)).toEqual([HOSTILE, "empty", `${LONG.slice(0, 240)}…`, "Ada"]);
    expect(await page.locator(".grid-row [data-column='2']").allTextContents()).toEqual(["null", "sad", "sad", "glad"]);
    expect(await page.title()).not.toBe("run");
    await page.locator(".grid-row [data-column='1']").nth(2).click();
    await page.getByRole("button", { name: "Details" }).click();
    const details = page.getByRole("complementary", { name: "Row" });
    await details.getByText(LONG.trim()).waitFor();
    await page.getByRole("link", { name: "notes" }).first().click();
    await showsIds(page, ["1", "2"]);
    const texts = await page.locator(".grid-row").first().locator("[role=gridcell]").allTextContents();
    const scrolled = await page.locator(".grid").evaluate((grid) => {
      grid.scrollLeft = grid.scrollWidth;
    });
    expect(scrolled).toBeUndefined();
    await page.locator(".grid-row [data-column='6']").first().waitFor();
    const rest = await page.locator(".grid-row").first().locator("[role=gridcell]").allTextContents();
    expect([...texts, ...rest]).toEqual(
      expect.arrayContaining([
        "9007199254740993",
        '{"a": 12345678901234567890}',
        '{x,"y,z",NULL}',
        "12345678901234567890.123456789",
        "\\xdead",
      ]),
    );
  });

  test("are sorted by clicks on headers, and by several with shift; the address says so, and Back undoes it", async () => {
    await visit("/studio/tables/public/people");
    await showsIds(page, ALL);
    const header = (title: string) => page.getByRole("columnheader", { name: title }).locator(".grid-title");
    await header("mood").click();
    await showsIds(page, ["9007199254740993", "3", "4", "2"]);
    expect(query(page)).toBe("?order=mood.asc");
    await header("born").click({ modifiers: ["Shift"] });
    await showsIds(page, ["9007199254740993", "4", "3", "2"]);
    expect(query(page)).toBe("?order=mood.asc,born.asc");
    expect(await page.getByRole("columnheader", { name: "born" }).getAttribute("aria-sort")).toBe("ascending");
    await page.goBack();
    await page.goBack();
    await showsIds(page, ALL);
    await page.goForward();
    await showsIds(page, ["9007199254740993", "3", "4", "2"]);
  });

  test("are filtered by operators of the column's type; a wrong value is explained", async () => {
    await visit("/studio/tables/public/people");
    await showsIds(page, ALL);
    await page.getByRole("button", { name: "Filter" }).click();
    const filters = page.getByRole("form", { name: "Filters" });
    await filters.getByLabel("Column").selectOption("mood");
    await filters.getByLabel("Operator").selectOption("=");
    expect(await filters.getByLabel("Value").locator("option").allTextContents()).toEqual(
      expect.arrayContaining([expect.stringContaining("glad"), expect.stringContaining("sad")]),
    );
    await filters.getByLabel("Value").selectOption("sad");
    await filters.getByRole("button", { name: "Apply" }).click();
    await showsIds(page, ["3", "4"]);
    expect(query(page)).toBe("?mood=eq.sad");
    await filters.getByRole("button", { name: "Remove the filter on mood" }).click();
    await showsIds(page, ALL);
    await page.getByRole("button", { name: "Filter" }).click();
    await filters.getByLabel("Column").selectOption("born");
    await filters.getByLabel("Operator").selectOption("≥");
    await filters.getByLabel("Value").fill("no date");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("22007").waitFor();
    await filters.getByLabel("Value").fill("1900-01-01");
    await page.keyboard.press("Enter");
    await showsIds(page, ["3", "4"]);
    await page.getByText("2 rows").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("have columns that are moved, resized and hidden, and stay so", async () => {
    await visit("/studio/tables/public/people");
    await showsIds(page, ALL);
    await expect.poll(() => titles(page)).toEqual(["id", "name", "mood", "born", "friend_id"]);
    await page.locator("[data-id=mood] .grid-title").hover();
    await page.mouse.down();
    await page.locator("[data-id=id] .grid-title").hover();
    await page.mouse.up();
    await expect.poll(() => titles(page)).toEqual(["mood", "id", "name", "born", "friend_id"]);
    const handle = (await page.locator("[data-id=mood] .grid-resize").boundingBox())!;
    await page.mouse.move(handle.x + 3, handle.y + 10);
    await page.mouse.down();
    await page.mouse.move(handle.x + 103, handle.y + 10);
    await page.mouse.up();
    const widthOf = async () => (await page.locator("[data-id=mood]").boundingBox())!.width;
    const width = await widthOf();
    await page.locator("[data-id=born]").hover();
    await page.locator("[data-id=born] .grid-menu-mark").click();
    await page.getByRole("menuitem", { name: "Hide this column" }).click();
    await page.reload();
    await page.locator(".grid-row").first().waitFor();
    await expect.poll(() => titles(page)).toEqual(["mood", "id", "name", "friend_id"]);
    expect(await widthOf()).toBe(width);
    await page.getByRole("button", { name: "Columns 4/5" }).click();
    await page.getByRole("button", { name: "Reset" }).click();
    await page.keyboard.press("Escape");
    await expect.poll(() => titles(page)).toEqual(["id", "name", "mood", "born", "friend_id"]);
  });

  test("lead to the rows that a row refers to, with a preview, and to those that refer to it", async () => {
    await visit("/studio/tables/public/notes");
    await showsIds(page, ["1", "2"]);
    await page.locator(".grid-row [data-column='1']").first().hover();
    await page.getByRole("tooltip").getByText("1815-12-10").waitFor();
    await page.locator(".grid-row [data-column='0']").first().click();
    await page.getByRole("tooltip").waitFor({ state: "detached" });
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tooltip").getByText("Ada").waitFor();
    await page.keyboard.press("Control+Enter");
    await showsIds(page, ["9007199254740993"]);
    expect(query(page)).toBe("?id=eq.9007199254740993");
    await page.locator(".grid").focus();
    await page.keyboard.press("Alt+Enter");
    await page.getByRole("complementary").getByRole("link", { name: "notes" }).click();
    await showsIds(page, ["1"]);
    expect(query(page)).toBe("?person_id=eq.9007199254740993");
  });

  test("are used by keyboard: to the header, its sort and its menu, and a range of cells is copied", async () => {
    await visit("/studio/tables/public/people");
    await showsIds(page, ALL);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.locator(".grid").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+ArrowDown");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Control+c");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(`3\t\n4\t${LONG}`);
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await showsIds(page, ALL.toReversed());
    await page.keyboard.press("Alt+ArrowDown");
    await page.getByRole("menuitem", { name: "Hide this column" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => titles(page)).toEqual(["name", "mood", "born", "friend_id"]);
    await page.evaluate("localStorage.clear()");
  });

  test("are listed in natural order, show whole times, and have a toolbar of one line on a phone", async () => {
    const view = await studio.open("/studio/tables/public/t2", { width: 390 });
    await view.getByText("2026-11-22 12:34:56.123456+00", { exact: true }).waitFor();
    const isCut = view.locator('.grid-row [data-column="1"]').evaluate((cell) => cell.scrollWidth > cell.clientWidth);
    expect(await isCut).toBe(false);
    const { height } = (await view.locator(".table-pane .page-header").boundingBox())!;
    expect(height).toBeLessThan(100);
    await view.getByRole("button", { name: "Filter" }).waitFor();
    await view.getByRole("link", { name: "All tables" }).click();
    const listed = await view.locator(".table-item-name").allTextContents();
    expect(listed.filter((name) => /^t\d/.test(name))).toEqual(["t2", "t10"]);
    await view.close();
  });

  test("say what to do when a privilege is taken away", async () => {
    await visit("/studio/tables/public/notes");
    await showsIds(page, ["1", "2"]);
    await studio.sql("revoke select on public.notes from admin");
    await page.getByRole("button", { name: "Read the rows again" }).click();
    await page.getByRole("alert").getByText("grant select on public.notes to admin;").waitFor();
    await studio.sql("grant select on public.notes to admin");
    await page.getByRole("button", { name: "Try again" }).click();
    await showsIds(page, ["1", "2"]);
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test("are listed by when they were opened, until one is chosen", async () => {
    await visit("/studio/tables");
    await page.getByText("Choose a table.").waitFor();
    const recent = page.getByRole("navigation", { name: "Opened last" }).getByRole("link");
    for (const name of ["people", "notes", "people"]) {
      await page
        .getByRole("link", { name: new RegExp(`^${name}\\b`) })
        .first()
        .click();
      await page.getByRole("heading", { name: `public.${name}` }).waitFor();
    }
    await page.getByRole("link", { name: "Tables", exact: true }).click();
    await expect
      .poll(async () => (await recent.allTextContents()).map((name) => name.trim()))
      .toEqual(["people", "notes"]);
    await recent.last().click();
    await page.waitForURL("**/studio/tables/public/notes");
  });

  test("are created from their own page too", async () => {
    await visit("/studio/tables");
    await page.getByRole("button", { name: "New table" }).click();
    await expect.poll(() => page.getByRole("dialog", { name: "New table" }).isVisible()).toBe(true);
  });

  test("can be read once the missing privilege was granted where it is shown", async () => {
    await studio.sql("create table public.unreadable (id int primary key); insert into public.unreadable values (7)");
    try {
      await visit("/studio/tables/public/unreadable");
      await page.getByText("grant select on public.unreadable to admin;").waitFor();
      expect(await page.getByText("grant usage").count()).toBe(0);
      await page.getByRole("button", { name: "Apply…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
      await showsIds(page, ["7"]);
    } finally {
      await studio.sql("drop table public.unreadable");
    }
  });

  test("are refused with the privilege that is missing, at the table that it is missing at", async () => {
    await visit("/studio/tables/public/front");
    await page.getByText('grant select on "public"."behind" to "admin";').waitFor();
    expect(await page.getByText("grant select").count()).toBe(1);
    await page.getByRole("button", { name: "Apply…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
    await showsIds(page, ["7"]);
  });

  test("say why no row is seen", async () => {
    await visit("/studio/tables/public/diaries?id=gt.0");
    await page.getByRole("note").getByRole("link", { name: "See why" }).click();
    await page.waitForURL("**/studio/access?**");
    expect(new URL(page.url()).searchParams.get("path")).toBe("/rest/v1/diaries?id=gt.0");
  });

  test("say how many rows are hidden from administrators for want of a policy, and show them when it is applied", async () => {
    await visit("/studio/tables/public/letters");
    await showsIds(page, ["1"]);
    const notice = page.getByRole("note").filter({ hasText: "admin sees 1 of 2 rows: there is no policy for admin." });
    await notice.getByRole("button", { name: "Apply…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
    await showsIds(page, ["1", "2"]);
    await until(async () => (await notice.count()) === 0);
    const [right] = await studio.sql("select has_table_privilege('admin', 'public.letters', 'update') as may_update");
    expect(right).toEqual({ may_update: true });
  });

  test("are those of the role that is viewed as", async () => {
    await visit("/studio/tables/public/glad_people");
    await showsIds(page, ["9007199254740993"]);
    await viewAs("anon");
    await page.getByRole("link", { name: /people.*The role anon may not read this table/s }).waitFor();
    await expect
      .poll(async () =>
        studio.requests.some(
          ({ url, headers }) => url.includes("/rest/v1/glad_people") && isOf("anon", headers.authorization),
        ),
      )
      .toBe(true);
    await showsIds(page, ["9007199254740993"]);
  });

  test("stay, with the place, when the token of the viewed role is renewed", async () => {
    const reads = () => studio.requests.filter(({ url }) => url.includes("/rest/v1/numbers")).length;
    await visit("/studio/tables/public/numbers?order=id.asc");
    await viewAs("anon");
    await page.locator(".grid-row [data-column='0']").first().click();
    await page.keyboard.press("ControlOrMeta+End");
    await page.locator(".grid-row", { hasText: "1000" }).waitFor();
    // The loop ends when all rows near the view have been read.
    for (let before = -1; before !== reads(); ) {
      before = reads();
      await page.waitForTimeout(300);
    }
    const before = { reads: reads(), ids: await ids(page) };
    await viewAs("anon");
    await page.waitForTimeout(300);
    expect({ reads: reads(), ids: await ids(page) }).toEqual(before);
    await viewAs("admin");
    await until(async () => reads() > before.reads);
  });

  test("are accessible on a phone and on a large screen, light and dark", async () => {
    for (const path of [
      "/studio/tables",
      "/studio/tables/public/notes?body=eq.first&data=is.null",
      "/studio/tables/public/people",
    ]) {
      await visit(path);
      await page
        .locator(path === "/studio/tables" ? ".table-item" : ".grid-header")
        .first()
        .waitFor();
      await expectAccessibleLayouts(page, path.replace("/studio/", "").replaceAll("/", "-"));
      await page.close();
    }
  });
});

function isOf(role: string, authorization = ""): boolean {
  const payload = authorization.split(".")[1] ?? "";
  return Buffer.from(payload, "base64url").toString().includes(`"role":"${role}"`);
}
