import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { DiagramBox } from "../../../studio/schema/diagram-model.ts";
import { searchBoxes } from "../../../studio/schema/diagram-search.ts";
import { useFixture } from "../../fixture.ts";
import { expectAccessibleLayouts } from "../../page-layouts.ts";
import { until } from "../../until.ts";
import { describeInBrowser, openStudio } from "../studio.ts";

/** 205 tables: users, twenty areas of ten tables, and four without relations. */
const SHOP = `
  create schema shop;
  create table shop.users (id int primary key, name text);
  do $$
  begin
    for area in 1..20 loop
      execute format('create table shop.area_%s (id int primary key, owner_id int references shop.users)', area);
      for part in 1..8 loop
        execute format(
          'create table shop.area_%1$s_part_%2$s (id int primary key, note text,
             area_id int references shop.area_%1$s, editor_id int references shop.users)', area, part);
      end loop;
      execute format('create table shop.area_%1$s_log (id int primary key, area_id int references shop.area_%1$s)', area);
    end loop;
    for setting in 1..4 loop
      execute format('create table shop.setting_%s (id int primary key, value text)', setting);
    end loop;
  end $$`;

describe("a search in the diagram", () => {
  const boxesOf = (...names: string[]) =>
    names.map((name) => ({ id: name, title: `shop.${name}`, table: { name } }) as unknown as DiagramBox);
  const found = (text: string) =>
    searchBoxes(boxesOf("big_orders", "orders_old", "Orders", "users"), text).map(({ id }) => id);

  test("finds parts of names, first the whole name, then those that begin with it", () => {
    expect(found(" orders")).toEqual(["Orders", "orders_old", "big_orders"]);
    expect(found("shop.us")).toEqual(["users"]);
    expect(found("nothing")).toEqual([]);
    expect(found(" ")).toEqual([]);
  });
});

describeInBrowser("the diagram of 205 tables", () => {
  const studio = useFixture(() => openStudio({ schema: SHOP, path: "/studio/nowhere", width: 1400 }));
  let page: Page;
  beforeAll(async () => {
    page = studio.page;
  });

  const show = async () => {
    // A table under the pointer would show its relations.
    await page.mouse.move(0, 0);
    await page.goto(`${studio.service.url}/studio/schema/diagram?schema=shop`);
    await page.getByRole("button", { name: "area_7 10 tables" }).waitFor();
  };
  const tables = () => page.locator(".diagram-table");
  /** The sizes of texts on the screen, in pixels. */
  const sizesOf = (selector: string) =>
    page.locator(selector).evaluateAll((texts) =>
      texts.map((text) => {
        const scale = (text as SVGGraphicsElement).getScreenCTM()!.a;
        return Number.parseFloat(getComputedStyle(text).fontSize) * scale;
      }),
    );
  /** True if the box of the table is wholly in the visible part of the diagram. */
  const isWithin = (table: string) =>
    page.locator(`svg.diagram a[aria-label^="${table},"] .diagram-box`).evaluateAll((boxes) => {
      const frame = document.querySelector("svg.diagram")!.getBoundingClientRect();
      const isInside = ({ left, top, right, bottom }: DOMRect) =>
        left >= frame.left && top >= frame.top && right <= frame.right && bottom <= frame.bottom;
      return boxes.length > 0 && boxes.every((box) => isInside(box.getBoundingClientRect()));
    });

  test("shows clusters, whose names are legible", async () => {
    await show();
    const names = await page
      .locator(".diagram-cluster-button")
      .evaluateAll((buttons) => buttons.map((button) => button.getAttribute("aria-label")!));
    expect(names).toHaveLength(21);
    expect(names).toContain("Without relations 4 tables");
    expect(names.reduce((sum, name) => sum + Number(/(\d+) tables$/.exec(name)![1]), 0)).toBe(205);
    expect(await tables().count()).toBe(0);
    const sizes = await sizesOf(".diagram-cluster-button > text");
    expect(Math.min(...sizes)).toBeGreaterThan(9.9);
    expect(Math.max(...sizes)).toBeLessThan(14.1);
  });

  test("enlarges a cluster by click and by key, and shows all again", async () => {
    await show();
    await page.getByRole("button", { name: "area_7 10 tables" }).click();
    await until(() => isWithin("area_7_part_3"));
    expect(Math.min(...(await sizesOf(".diagram-title")))).toBeGreaterThan(7);
    expect(await page.evaluate("document.activeElement.classList.contains('diagram')")).toBe(true);
    await page.keyboard.press("0");
    await page.getByRole("button", { name: "area_12 10 tables" }).focus();
    await page.keyboard.press("Enter");
    await until(() => isWithin("area_12_log"));
    await page.getByRole("link", { name: /^area_12_log,/ }).focus();
    await page.keyboard.press("0");
    await page.getByRole("button", { name: "area_12 10 tables" }).waitFor();
    expect(await page.evaluate("document.activeElement.classList.contains('diagram')")).toBe(true);
  });

  test("zooms to the tables that a search finds, one after the other or all of them", async () => {
    await show();
    const field = page.getByLabel("Find a table");
    const status = page.locator(".schema-search").getByRole("status");
    const said = (text: string) => expect.poll(() => status.textContent()).toBe(text);
    await field.fill("_log");
    await said("20 found");
    await field.press("Enter");
    await said("1 of 20");
    await until(() => isWithin("area_1_log"));
    const labels = await page
      .locator(".diagram-table.lit > a")
      .evaluateAll((boxes) => boxes.map((box) => box.getAttribute("aria-label")!.split(",")[0]));
    expect(labels.sort()).toEqual(["area_1", "area_1_log"]);
    await field.press("Enter");
    await said("2 of 20");
    await until(() => isWithin("area_10_log"));
    await field.press("Shift+Enter");
    await said("1 of 20");
    await page.getByRole("button", { name: "Zoom to found" }).click();
    await said("20 found");
    const outlines = page.locator(".diagram-outlines.found");
    await until(async () => (await outlines.getAttribute("d"))!.match(/M/g)!.length === 20);
    await field.fill("nothing");
    await said("No table.");
    expect(await page.getByRole("button", { name: "Zoom to found" }).isDisabled()).toBe(true);
  });

  test("zooms to the table in focus and its relations", async () => {
    await show();
    await page.getByLabel("Find a table").fill("area_3_log");
    await page.getByLabel("Find a table").press("Enter");
    await until(() => isWithin("area_3_log"));
    await page.getByRole("link", { name: /^area_3_log,/ }).focus();
    for (let step = 0; step < 12; step++) await page.keyboard.press("ArrowLeft");
    expect(await isWithin("area_3_log")).toBe(false);
    await page.keyboard.press("z");
    await until(async () => (await isWithin("area_3_log")) && (await isWithin("area_3")));
  });

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    await show();
    await expectAccessibleLayouts(page, "schema-diagram-large");
  });
});
