import { describe, expect, test } from "vitest";
import {
  addTab,
  addToHistory,
  closeTab,
  type HistoryEntry,
  openTabs,
  saveQuery,
  searchHistory,
} from "../../../studio/sql/stored-queries.ts";

const ran = (text: string, at: number, as = "owner") => ({ text, at, as, milliseconds: 1, error: null });
const textsOf = (entries: readonly HistoryEntry[]) => entries.map(({ text }) => text);

describe("the history", () => {
  test("has a text of one caller once, at its latest time", () => {
    const once = addToHistory(addToHistory([], ran("select 1", 1)), ran("select 2", 2));
    const again = addToHistory(once, ran("select 1", 3));
    expect(again.map(({ text, at }) => [text, at])).toEqual([
      ["select 1", 3],
      ["select 2", 2],
    ]);
    expect(addToHistory(again, ran("select 1", 4, "anon"))).toHaveLength(3);
  });

  test("keeps 200 entries, and all pinned ones", () => {
    let entries = addToHistory([], ran("pinned", 0)).map((entry) => ({ ...entry, isPinned: true }));
    for (let at = 1; at <= 250; at++) entries = [...addToHistory(entries, ran(`select ${at}`, at))];
    expect(entries).toHaveLength(201);
    expect(textsOf(entries)).toContain("pinned");
    expect(textsOf(entries)).not.toContain("select 50");
    expect(addToHistory([], ran("x".repeat(30_000), 1))).toEqual([]);
  });

  test("is searched by words, pinned entries first", () => {
    const entries = [ran("select a from films", 3), ran("update films set a = 1", 2), ran("select b", 1)].map(
      (entry, id) => ({ ...entry, id: String(id), isPinned: id === 1 }),
    );
    expect(textsOf(searchHistory(entries, "FILMS a"))).toEqual(["update films set a = 1", "select a from films"]);
    expect(searchHistory(entries, "nothing")).toEqual([]);
  });
});

test("closing a query shows its neighbour, and never leaves none", () => {
  const two = addTab(openTabs.get(), "select 2");
  const [first, second] = two.tabs;
  expect(closeTab(two, second!.id)).toEqual({ tabs: [first], current: first!.id });
  const emptied = closeTab(closeTab(two, second!.id), first!.id);
  expect(emptied.tabs).toEqual([{ id: emptied.current, name: "", text: "" }]);
});

test("a saved query replaces the one of its name", () => {
  const saved = saveQuery(saveQuery([], { name: "b", text: "1" }), { name: "a", text: "2" });
  expect(saveQuery(saved, { name: "b", text: "3" })).toEqual([
    { name: "a", text: "2" },
    { name: "b", text: "3" },
  ]);
});
