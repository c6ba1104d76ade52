import { describe, expect, test } from "vitest";
import { cellAfterKey, isWithin, rangeBetween } from "../../../studio/components/grid-keys.ts";
import { positionAfterScroll, type ScrollGeometry, scrollTopOf } from "../../../studio/components/grid-scroll.ts";

const SMALL: ScrollGeometry = { contentHeight: 3000, viewHeight: 300 };
const LARGE: ScrollGeometry = { contentHeight: 290_000_000, viewHeight: 600 };
const LAST = LARGE.contentHeight - LARGE.viewHeight;

describe("scrolling a grid", () => {
  test("a grid that fits into an element moves with it", () => {
    expect(positionAfterScroll({ position: 0, scrollTop: 0 }, 1234, SMALL)).toBe(1234);
    expect(scrollTopOf(1234, SMALL)).toBe(1234);
  });

  test("a step of the wheel moves as many pixels of content, whatever the scale", () => {
    const before = { position: 5_000_000, scrollTop: scrollTopOf(5_000_000, LARGE) };
    expect(positionAfterScroll(before, before.scrollTop + 100, LARGE)).toBe(5_000_100);
    expect(positionAfterScroll(before, before.scrollTop - 40, LARGE)).toBe(4_999_960);
    expect(positionAfterScroll(before, before.scrollTop + 5_000, LARGE, true)).toBe(5_005_000);
  });

  test("the scrollbar moves to the place in proportion, and reaches both ends", () => {
    const before = { position: 0, scrollTop: 0 };
    const end = scrollTopOf(LAST, LARGE);
    expect(end).toBeLessThan(17_000_000);
    expect(positionAfterScroll(before, end, LARGE)).toBe(LAST);
    expect(positionAfterScroll(before, end / 2, LARGE)).toBeCloseTo(LAST / 2);
    expect(positionAfterScroll({ position: LAST, scrollTop: end }, 0, LARGE)).toBe(0);
  });

  test("a step never leaves the content", () => {
    const end = scrollTopOf(LAST, LARGE);
    expect(positionAfterScroll({ position: LAST - 10, scrollTop: end - 100 }, end, LARGE)).toBe(LAST);
    expect(positionAfterScroll({ position: 10, scrollTop: 100 }, 0, LARGE)).toBe(0);
  });
});

describe("the keys of a grid", () => {
  const size = { rows: 100, columns: 5, page: 20 };
  const at = { row: 50, column: 2 };
  const press = (key: string, modifiers: { ctrlKey?: boolean; altKey?: boolean } = {}) => ({
    key,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    ...modifiers,
  });

  test.each([
    ["ArrowDown", {}, { row: 51, column: 2 }],
    ["ArrowLeft", {}, { row: 50, column: 1 }],
    ["PageDown", {}, { row: 70, column: 2 }],
    ["PageUp", {}, { row: 30, column: 2 }],
    ["Home", {}, { row: 50, column: 0 }],
    ["End", {}, { row: 50, column: 4 }],
    ["End", { ctrlKey: true }, { row: 99, column: 4 }],
    ["Home", { ctrlKey: true }, { row: 0, column: 0 }],
    ["ArrowDown", { ctrlKey: true }, { row: 99, column: 2 }],
  ])("%s with %o moves to %o", (key, modifiers, expected) => {
    expect(cellAfterKey(press(key, modifiers), at, size)).toEqual(expected);
  });

  test("a move ends at the edges, and above the first row at the header", () => {
    expect(cellAfterKey(press("ArrowUp"), { row: 0, column: 0 }, size)).toEqual({ row: -1, column: 0 });
    expect(cellAfterKey(press("ArrowUp"), { row: -1, column: 0 }, size)).toEqual({ row: -1, column: 0 });
    expect(cellAfterKey(press("PageDown"), { row: 95, column: 4 }, size)).toEqual({ row: 99, column: 4 });
    expect(cellAfterKey(press("ArrowRight"), { row: 95, column: 4 }, size)).toEqual({ row: 95, column: 4 });
    expect(cellAfterKey(press("ArrowLeft", { altKey: true }), at, size)).toBeNull();
    expect(cellAfterKey(press("a"), at, size)).toBeNull();
  });

  test("a range has all cells between two corners, but not the header", () => {
    const range = rangeBetween({ row: 4, column: 1 }, { row: -1, column: 3 });
    expect(range).toEqual({ from: { row: 0, column: 1 }, to: { row: 4, column: 3 } });
    expect([isWithin(range, { row: 2, column: 2 }), isWithin(range, { row: 2, column: 0 })]).toEqual([true, false]);
  });
});
