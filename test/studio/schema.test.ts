import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { REPOSITORY } from "../repository.ts";
import { until } from "../until.ts";
import { describeInBrowser, modulePath, type OpenStudio, openStudio } from "./studio.ts";

const HOSTILE = "<img src=x onerror=alert(1)>";
const DIAGRAM = "/studio/schema/diagram";

const MORE = `
  create table odd."${HOSTILE}" (id int primary key, "</text>" text default '<b>');
  comment on table odd."${HOSTILE}" is '<script>alert(2)</script>';
  alter table odd.flights enable row level security;
  create policy "own flights" on odd.flights as restrictive for update to authenticated using (id > 3) with check (id > 4);
  grant select on odd.flights to anon;
  grant usage on schema odd to anon;
  grant update (city) on odd.flights to anon;
  create function odd.touch() returns trigger language plpgsql as 'begin return new; end';
  create trigger touched before update on odd.flights for each row execute function odd.touch();
`;

/** The text that the page shows of an element. */
const textOf = async (page: Page, selector: string) => (await page.locator(selector).innerText()).replace(/\s+/g, " ");

/** Returns the place of a table's box on the screen. */
async function boxOf(page: Page, table: string) {
  const box = await page.locator(`a[aria-label^="${table},"] .diagram-box`).boundingBox();
  return box!;
}

describeInBrowser("the schema page", () => {
  let studio: OpenStudio;
  let page: Page;
  beforeAll(async () => {
    const odd = await readFile(join(REPOSITORY, "test/data/schemas/odd.sql"), "utf8");
    const schema = `create schema odd; set search_path = odd, public; ${odd.replaceAll("public.", "odd.")}; ${MORE} reset search_path`;
    studio = await openStudio({ schema, path: "/studio/schema" });
    page = studio.page;
  });
  afterAll(() => studio?.close());

  const show = async (path: string) => {
    await page.goto(studio.service.url + path);
    await page.locator(".schema-article, .diagram, .schema-list nav a").first().waitFor();
  };
  const diagramOf = async (query = "?schema=odd") => {
    await show(DIAGRAM + query);
    await page.locator(".diagram-table").first().waitFor();
  };

  test("lists all objects, and finds them by words of their name, kind and comment", async () => {
    await show("/studio/schema");
    const items = page.getByRole("navigation", { name: "Objects of the database" }).getByRole("link");
    await page.getByLabel("Search all objects").fill("odd fli");
    await until(async () => (await items.count()) < 10);
    expect((await items.allInnerTexts()).map((text) => text.replace(/\s+/g, ""))).toContain("tableodd.flights");
    await page.getByLabel("Search all objects").fill("mood");
    await page.getByLabel("Kind", { exact: true }).selectOption("type");
    await until(async () => (await items.count()) === 1);
    await items.click();
    expect(await textOf(page, ".schema-labels")).toContain("very happy");
  });

  test("objects of the service are listed only when they are asked for", async () => {
    await show("/studio/schema");
    const tables = ["auth/users", "api/webhooks", "content_service/tasks"].map((name) =>
      page.locator(`a[href="/studio/schema/table/${name}"]`),
    );
    const find = (text: string) => page.getByLabel("Search all objects").fill(text);
    await find("flights");
    await page.locator('a[href="/studio/schema/table/odd/flights"]').waitFor();
    for (const text of ["users", "webhooks", "tasks"]) {
      await find(text);
      for (const table of tables) expect(await table.count()).toBe(0);
    }
    await find("");
    await page.getByLabel("Schemas of the service").check();
    for (const table of tables) await table.waitFor();
  });

  test("a table has its columns, constraints, indexes, policies, triggers, privileges and references", async () => {
    await show("/studio/schema/table/odd/flights");
    const regions = (name: string) => page.getByRole("region", { name });
    expect(await regions("Columns").getByRole("row").count()).toBe(7);
    expect(await regions("Constraints").innerText()).toContain("FOREIGN KEY (from_city) REFERENCES odd.cities(code)");
    expect(await regions("Indexes").innerText()).toContain("CREATE UNIQUE INDEX flights_pkey");
    const policy = (await regions("Policies").innerText()).replace(/\s+/g, " ");
    expect(policy).toContain("own flights update restrictive authenticated (id > 3) (id > 4)");
    expect(await regions("Triggers").getByRole("link", { name: "odd.touch" }).count()).toBe(1);
    const anonymous = page.getByRole("row", { name: /^anon/ });
    expect((await anonymous.innerText()).replace(/\s+/g, " ")).toBe("anon yes – no city – no");
    expect(await regions("Referenced by").getByRole("link", { name: "odd.friends" }).count()).toBe(2);
    const uses = (await regions("Used by").innerText()).replace(/\s+/g, " ");
    expect(uses).toContain("own flights of odd.flights policy id");
    expect(uses).toContain("odd.flight_names view from_city, id");
    await page.locator(".cm-content").waitFor();
    expect(await textOf(page, ".cm-content")).toContain("create table odd.flights (");
  });

  test("a function has its text, and the tables whose triggers call it", async () => {
    await show("/studio/schema/function/odd/touch/()");
    await page.locator(".cm-content").waitFor();
    expect(await textOf(page, ".cm-content")).toContain("begin return new; end");
    await page.getByRole("region", { name: "Triggers" }).getByRole("link", { name: "odd.flights" }).click();
    await page.getByRole("heading", { name: "odd.flights", exact: true }).waitFor();
  });

  test("views, partitions, sequences, extensions and publications have their particulars", async () => {
    await show("/studio/schema/table/odd/flight_names");
    await page.locator(".cm-content").waitFor();
    expect(await textOf(page, ".cm-content")).toContain("create view odd.flight_names as SELECT");
    await show("/studio/schema/table/odd/parts_all");
    expect(await textOf(page, ".schema-facts")).toContain("FOR VALUES FROM (MINVALUE) TO (MAXVALUE)");
    await show("/studio/schema/sequence/odd/types_id_seq");
    expect(await textOf(page, ".schema-facts")).toContain("odd.types.id");
    await show("/studio/schema/extension/hstore");
    expect(await textOf(page, ".schema-facts")).toContain("Version");
    await show("/studio/schema/publication/supabase_realtime");
    expect(await textOf(page, ".schema-article")).toContain("articles");
    await page.goto(`${studio.service.url}/studio/schema/table/odd/nothing`);
    await page.getByText("There is no such object.").waitFor();
  });

  test("names and comments that are HTML are shown as text", async () => {
    await show(`/studio/schema/table/odd/${encodeURIComponent(HOSTILE)}`);
    expect(await page.getByRole("heading", { name: `odd.${HOSTILE}` }).count()).toBe(1);
    expect(await textOf(page, ".schema-header")).toContain("<script>alert(2)</script>");
    await diagramOf();
    expect(await page.getByRole("link", { name: `${HOSTILE}, 2 columns` }).count()).toBe(1);
    expect(await page.locator(".diagram img").count()).toBe(0);
  });

  test("the diagram has each table and each foreign key, and the same as text", async () => {
    await diagramOf();
    expect(await page.locator(".diagram-table").count()).toBe(17);
    expect(await page.locator(".diagram-link").count()).toBe(11);
    const label = await page.locator("svg.diagram").getAttribute("aria-label");
    expect(label).toBe("Diagram of 17 tables and 11 foreign keys");
    await page.getByText("The foreign keys as text").click();
    const texts = await page.locator(".schema-relations li").allInnerTexts();
    expect(texts).toContain("details_of_details (order, select) refers to order details (order, select)");
    expect(texts).toContain("flights (return_flight) refers to flights (id)");
  });

  test("a table that is pointed at or focused shows its relations, and opens by click and Enter", async () => {
    await diagramOf();
    const litTables = async () =>
      (
        await page
          .locator(".diagram-table.lit > a")
          .evaluateAll((boxes) => boxes.map((box) => box.getAttribute("aria-label")))
      )
        .map((label) => label!.split(",")[0])
        .sort();
    await page.getByRole("link", { name: /^profiles,/ }).focus();
    expect(await litTables()).toEqual(["flights", "profiles"]);
    const cities = await boxOf(page, "cities");
    await page.mouse.move(cities.x + 10, cities.y + 10);
    await until(async () => (await litTables()).join() === "cities,flights");
    await page.mouse.click(cities.x + 10, cities.y + 10);
    await page.getByRole("heading", { name: "odd.cities" }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: /^profiles,/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "odd.profiles" }).waitFor();
  });

  test("the menus of columns, constraints and policies are below each other", async () => {
    await show("/studio/schema/table/public/users");
    const menus = page.locator(".plain-table .menu-button");
    await until(async () => (await menus.count()) > 8);
    const places = await menus.evaluateAll((all) => all.map((button) => button.getBoundingClientRect().right));
    expect(Math.max(...places) - Math.min(...places)).toBeLessThan(1);
  });

  test("the diagram is moved and scaled by mouse, keys and buttons", async () => {
    await diagramOf("");
    const before = await boxOf(page, "users");
    await page.mouse.move(700, 200);
    await page.mouse.down();
    await page.mouse.move(760, 240, { steps: 4 });
    await page.mouse.up();
    const moved = await boxOf(page, "users");
    expect([Math.round(moved.x - before.x), Math.round(moved.y - before.y)]).toEqual([60, 40]);
    await page.mouse.move(moved.x, moved.y);
    await page.mouse.wheel(0, -300);
    const larger = await boxOf(page, "users");
    expect(larger.width).toBeGreaterThan(moved.width * 1.3);
    expect(Math.abs(larger.x - moved.x)).toBeLessThan(2);
    await page.locator("svg.diagram").focus();
    await page.keyboard.press("0");
    expect(Math.round((await boxOf(page, "users")).x)).toBe(Math.round(before.x));
    await page.keyboard.press("ArrowRight");
    expect((await boxOf(page, "users")).x).toBeLessThan(before.x);
    await page.keyboard.press("+");
    await page.getByRole("button", { name: "Zoom in" }).click();
    expect((await boxOf(page, "users")).width).toBeGreaterThan(before.width * 1.4);
    await page.getByRole("button", { name: "Fit" }).click();
    expect(Math.round((await boxOf(page, "users")).width)).toBe(Math.round(before.width));
  });

  test("the diagram stays where it was moved when the catalogue is read again", async () => {
    await diagramOf("");
    const common = await modulePath(page, "common.js");
    const readAgain = async () => {
      await page.evaluate(`(async () => {
        const { reloadCatalog } = await import("${common}");
        await reloadCatalog();
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      })()`);
    };
    await readAgain();
    await page.getByRole("button", { name: "Zoom in" }).click();
    const before = await boxOf(page, "users");
    await studio.sql("create sequence public.unrelated");
    const read = page.waitForResponse((response) => response.url().endsWith("/admin/v1/catalog"));
    await readAgain();
    expect((await read).status()).toBe(200);
    expect(await boxOf(page, "users")).toEqual(before);
    await studio.sql("drop sequence public.unrelated");
  });

  test("two fingers scale the diagram", async () => {
    await diagramOf("");
    const before = await boxOf(page, "users");
    const session = await page.context().newCDPSession(page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", distance: number) =>
      session.send("Input.dispatchTouchEvent", {
        type,
        touchPoints:
          type === "touchEnd"
            ? []
            : [
                { x: 700 - distance, y: 300, id: 1 },
                { x: 700 + distance, y: 300, id: 2 },
              ],
      });
    await touch("touchStart", 50);
    for (const distance of [60, 80, 100]) await touch("touchMove", distance);
    await touch("touchEnd", 0);
    await expect.poll(async () => (await boxOf(page, "users")).width > before.width * 1.5).toBe(true);
    await session.detach();
  });

  test("a box stays where it was dragged, also after a reload, until the diagram is arranged again", async () => {
    await diagramOf("");
    const before = await boxOf(page, "comments");
    await page.mouse.move(before.x + 20, before.y + 10);
    await page.mouse.down();
    await page.mouse.move(before.x - 80, before.y + 110, { steps: 5 });
    await page.mouse.up();
    const dragged = await boxOf(page, "comments");
    expect([Math.round(dragged.x - before.x), Math.round(dragged.y - before.y)]).toEqual([-100, 100]);
    expect(new URL(page.url()).pathname).toBe(DIAGRAM);
    const distance = async () => (await boxOf(page, "comments")).y - (await boxOf(page, "users")).y;
    const kept = await distance();
    await page.reload();
    await page.locator(".diagram-table").first().waitFor();
    expect(Math.round(await distance())).toBe(Math.round(kept));
    await page.getByRole("link", { name: /^comments,/ }).focus();
    const placed = await distance();
    await page.keyboard.press("Alt+ArrowDown");
    await until(async () => (await distance()) > placed);
    await page.getByRole("button", { name: "Arrange" }).click();
    await until(async () => Math.abs((await boxOf(page, "comments")).x - before.x) < 1);
  });

  test("tables and columns can be chosen, and the address keeps the choice", async () => {
    await diagramOf("?schema=odd");
    await page.getByText("All 17 tables").click();
    await page.getByRole("button", { name: "Choose none" }).click();
    await page.getByLabel("odd.cities").check();
    await page.getByLabel("odd.flights").check();
    await until(async () => (await page.locator(".diagram-table").count()) === 2);
    expect(await page.locator(".diagram-link").count()).toBe(4);
    await page.getByLabel("Columns", { exact: true }).selectOption("none");
    await until(async () => (await page.locator(".diagram-column").count()) === 0);
    await page.reload();
    await page.locator(".diagram-table").first().waitFor();
    expect(await page.locator(".diagram-table").count()).toBe(2);
    expect(await page.locator(".diagram-column").count()).toBe(0);
  });

  test("a table's page leads to the diagram of its neighbours", async () => {
    await show("/studio/schema/table/odd/cities");
    await page.getByRole("link", { name: "Show in the diagram" }).click();
    await page.locator(".diagram-table").first().waitFor();
    expect(await page.locator(".diagram-table").count()).toBe(2);
    await page.getByLabel("Schema", { exact: true }).selectOption("public");
    await until(async () => (await page.locator(".diagram-table").count()) === 4);
  });

  test("the diagram is downloaded as a file of its own, and printed whole", async () => {
    await diagramOf();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download SVG" }).click(),
    ]);
    const file = await readFile(await download.path(), "utf8");
    expect(download.suggestedFilename()).toMatch(/\.svg$/);
    expect(file).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    expect(file).toContain("return_flight");
    expect(file).not.toMatch(/href|<script|<img/);
    for (let round = 0; round < 8; round++) await page.getByRole("button", { name: "Zoom in" }).click();
    await page.evaluate("window.dispatchEvent(new Event('beforeprint'))");
    await page.emulateMedia({ media: "print" });
    expect(await page.locator(".schema-print .diagram-table").count()).toBe(17);
    expect(await page.locator(".schema-print").isVisible()).toBe(true);
    expect(await page.locator("#studio").isVisible()).toBe(false);
    await page.emulateMedia({ media: null });
    await page.evaluate("window.dispatchEvent(new Event('afterprint'))");
    expect(await page.locator(".schema-print").count()).toBe(0);
  });

  test("the catalogue is read again on request, and a new table appears", async () => {
    await show("/studio/schema");
    await studio.sql("create table public.newcomers (id int primary key)");
    await page.getByRole("button", { name: "Read the schema again" }).click();
    await expect.poll(() => page.getByRole("link", { name: "newcomers" }).isVisible()).toBe(true);
    await studio.sql("drop table public.newcomers");
  });

  test("the list, a table and the diagram are accessible on a phone and on a large screen, light and dark", async () => {
    for (const path of ["/studio/schema", "/studio/schema/table/odd/flights", `${DIAGRAM}?schema=odd`]) {
      const opened = await studio.open(path);
      await opened.locator(".cm-content, .diagram-table, .empty").first().waitFor();
      await expectAccessibleLayouts(opened, path.replace("/studio/", "").replaceAll("/", "-"));
      await opened.close();
    }
  });
});
