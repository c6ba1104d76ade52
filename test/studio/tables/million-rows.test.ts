import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { ROW_HEIGHT } from "../../../studio/components/grid-scroll.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { describeInBrowser, openStudio } from "../studio.ts";

const ROWS = 1_000_000;
const SCHEMA = `
  create unlogged table public.measurements (
    id bigint, place text not null, amount numeric, taken_at timestamptz not null, good boolean);
  insert into public.measurements
    select n, 'place ' || n % 1000, nullif(n % 97, 5) / 8.0, timestamptz '2026-01-01' + n * interval '1 second', n % 3 = 0
    from generate_series(1, ${ROWS}) n;
  alter table public.measurements add primary key (id);
  create index on public.measurements (taken_at, id);
  grant select on public.measurements to admin;
  analyze public.measurements`;

/** The number of each row in view, and the text of its first cell; null while it is read. */
type SeenRow = readonly [index: number, id: string | null];

const seenRows = (page: Page) =>
  page.evaluate<SeenRow[]>(
    `[...document.querySelectorAll(".grid-row")].map((row) => [Number(row.dataset.row), row.querySelector("[data-column='0']")?.textContent || null])`,
  );

/** Waits until all rows in view are read, and checks that they are the right ones; returns the first. */
async function settledAt(page: Page, expected: (index: number) => number = (index) => index + 1): Promise<number> {
  let rows: SeenRow[] = [];
  await until(async () => {
    rows = await seenRows(page);
    return rows.length > 10 && rows.every(([, id]) => id !== null);
  });
  expect(rows).toEqual(rows.map(([index]) => [index, String(expected(index))]));
  return rows[0]![0];
}

/** Counts the frames in which a row in view was blank, while the action runs. */
async function blankFrames(page: Page, action: () => Promise<void>): Promise<{ frames: number; blank: number }> {
  await page.evaluate(`{
    const count = (window.counted = { frames: 0, blank: 0, isCounting: true });
    const next = () => {
      if (!count.isCounting) return;
      count.frames += 1;
      if (document.querySelector(".grid-row.pending")) count.blank += 1;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }`);
  await action();
  return page.evaluate("(window.counted.isCounting = false, window.counted)");
}

const scrollTo = (page: Page, share: number) =>
  page.evaluate(`{
    const grid = document.querySelector(".grid");
    grid.scrollTop = (grid.scrollHeight - grid.clientHeight) * ${share};
  }`);

/** A browser that is short of time may lose an event of the wheel: it is sent again after so many looks at the page. */
const LOOKS_PER_EVENT = 25;

/** The sum of all pixels by which the page was told to scroll by the wheel. A late event counts when it comes. */
const turnedPixels = (page: Page) =>
  page.evaluate<number>(`{
    if (window.turned === undefined) {
      window.turned = 0;
      document.querySelector(".grid").addEventListener("wheel", ({ deltaY }) => { window.turned += deltaY; }, { passive: true });
    }
    window.turned;
  }`);

/** Turns the wheel until the first row in view is another one; returns that row, and the sum of pixels. */
async function turnWheel(page: Page, pixels: number): Promise<{ first: number; turned: number }> {
  const [[before]] = (await seenRows(page)) as [SeenRow];
  let looks = 0;
  await until(async () => {
    if (looks++ % LOOKS_PER_EVENT === 0) await page.mouse.wheel(0, pixels);
    const [[first]] = (await seenRows(page)) as [SeenRow];
    return pixels > 0 ? first > before : first < before;
  });
  const first = await settledAt(page);
  return { first, turned: await turnedPixels(page) };
}

async function memoryOf(page: Page): Promise<{ heap: number; nodes: number }> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  const metric = (name: string) => metrics.find((each) => each.name === name)!.value;
  await session.detach();
  return {
    heap: metric("JSHeapUsedSize") / 2 ** 20,
    nodes: await page.evaluate("document.querySelectorAll('*').length"),
  };
}

describeInBrowser("a table of a million rows", () => {
  let page: Page;
  const studio = useFixture(() =>
    openStudio({ template: "empty", schema: SCHEMA, path: "/studio/tables/public/measurements" }),
  );
  beforeAll(async () => {
    page = studio.page;
    await settledAt(page);
  });

  test("is painted soon after the navigation", async () => {
    await page.addInitScript(`new MutationObserver((_changes, observer) => {
      if (!document.querySelector(".grid-row:not(.pending)")) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => (window.firstPaint = performance.now())));
    }).observe(document, { childList: true, subtree: true })`);
    const times: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      await page.reload();
      await until(() => page.evaluate("window.firstPaint !== undefined"));
      times.push(Math.round(await page.evaluate<number>("window.firstPaint")));
      expect(await settledAt(page)).toBe(0);
    }
    console.log(`first rows painted after ${times.join(", ")} ms`);
  });

  test("scrolls by the wheel, by dragging to the middle and to the end, and back, without a blank or wrong row", async () => {
    await page.locator(".row-count", { hasText: /^1,000,000 rows$/ }).waitFor();
    await page.locator(".grid").hover();
    const start = await turnedPixels(page);
    for (let step = 0; step < 20; step += 1) {
      const { first, turned } = await turnWheel(page, 700);
      expect(first).toBeLessThanOrEqual(Math.ceil((turned - start) / ROW_HEIGHT));
    }
    await scrollTo(page, 0.5);
    await until(async () => Math.abs((await seenRows(page))[0]![0] - ROWS / 2) < 100);
    const middle = await settledAt(page);
    const turned = await turnedPixels(page);
    const below = await turnWheel(page, 2900);
    expect(below.first - middle).toBeLessThanOrEqual(Math.ceil((below.turned - turned) / ROW_HEIGHT));
    const back = await turnWheel(page, -5800);
    expect(below.first - back.first).toBeLessThanOrEqual(Math.ceil((below.turned - back.turned) / ROW_HEIGHT));
    expect(back.first).toBeLessThan(middle);
    await scrollTo(page, 1);
    await until(async () => (await seenRows(page)).at(-1)![0] === ROWS - 1);
    await settledAt(page);
    await scrollTo(page, 0);
    await until(async () => (await seenRows(page))[0]![0] === 0);
    await settledAt(page);
  });

  test("stays where it was dragged, also if the page is busy from a step of the wheel until then", async () => {
    await page.locator(".grid").hover();
    for (let drag = 0; drag < 5; drag += 1) {
      await turnWheel(page, 290);
      await page.evaluate(`{
        const end = performance.now() + 300;
        while (performance.now() < end);
        const grid = document.querySelector(".grid");
        grid.scrollTop = (grid.scrollHeight - grid.clientHeight) / 2;
      }`);
      await until(async () => Math.abs((await seenRows(page))[0]![0] - ROWS / 2) < 100);
      await scrollTo(page, 0);
      await until(async () => (await seenRows(page))[0]![0] === 0);
      expect(await settledAt(page)).toBe(0);
    }
  });

  test("shows no blank row while the wheel is turned fast, and keeps the memory bounded", async () => {
    await page.locator(".grid").hover();
    const before = await memoryOf(page);
    const turned = await blankFrames(page, async () => {
      for (let step = 0; step < 150; step += 1) await page.mouse.wheel(0, 600);
    });
    const first = await settledAt(page);
    expect(first).toBeGreaterThan(1000);
    const after = await memoryOf(page);
    console.log(`${turned.blank} of ${turned.frames} frames had a blank row in ${first} rows`);
    console.log(
      `heap ${before.heap.toFixed(1)} -> ${after.heap.toFixed(1)} MiB, elements ${before.nodes} -> ${after.nodes}`,
    );
    expect(turned.frames).toBeGreaterThan(10);
    expect(after.nodes).toBeLessThan(3000);
    expect(after.heap - before.heap).toBeLessThan(32);
  });

  test("is sorted by an index, shown from the start, and scrolls to the end of that order", async () => {
    await scrollTo(page, 0.3);
    await until(async () => (await seenRows(page))[0]![0] > 1000);
    await page.locator("[data-id=taken_at] .grid-title").click();
    await until(async () => (await seenRows(page))[0]![0] === 0);
    await settledAt(page);
    await page.locator("[data-id=taken_at] .grid-title").click();
    await settledAt(page, (index) => ROWS - index);
    await page.locator(".row-count", { hasText: /^1,000,000 rows$/ }).waitFor();
    await scrollTo(page, 1);
    await expect.poll(async () => (await seenRows(page)).at(-1)![0] === ROWS - 1).toBe(true);
    await settledAt(page, (index) => ROWS - index);
  });

  test("is walked through by keys: to the last row, a page up, and to the first", async () => {
    await page.goto(`${studio.service.url}/studio/tables/public/measurements`);
    await settledAt(page);
    await page.locator(".row-count", { hasText: /^1,000,000 rows$/ }).waitFor();
    await page.locator(".grid").focus();
    await page.keyboard.press("Control+End");
    await until(async () => (await seenRows(page)).at(-1)![0] === ROWS - 1);
    await settledAt(page);
    const grid = page.locator(".grid");
    expect(await grid.getAttribute("aria-rowcount")).toBe(String(ROWS + 1));
    const active = await grid.getAttribute("aria-activedescendant");
    expect(await page.locator(`[id="${active}"]`).getAttribute("aria-colindex")).toBe("5");
    expect(
      await page
        .locator(`[id="${active}"]`)
        .evaluate((cell) => cell.closest("[role=row]")!.getAttribute("aria-rowindex")),
    ).toBe(String(ROWS + 1));
    await page.keyboard.press("PageUp");
    await page.keyboard.press("Control+Home");
    await until(async () => (await seenRows(page))[0]![0] === 0);
    await settledAt(page);
  });
});
