import type { SavedQuery, SharedQuery, SharedQueryList } from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import { request } from "../api/client.ts";
import { makeStore, type Store } from "../store.ts";
import { isJsonObject, readStoredJson, writeStoredJson } from "../stored-json.ts";

export type QueryTab = { readonly id: string; readonly name: string; readonly text: string };

type OpenTabs = { readonly tabs: readonly QueryTab[]; readonly current: string };

/** A text that was run before. */
export type HistoryEntry = {
  readonly id: string;
  /** The time of the last run, in milliseconds since 1970. */
  readonly at: number;
  readonly text: string;
  /** The role of the run: `owner`, or another role. */
  readonly as: string;
  readonly milliseconds: number;
  /** The error; null if the run succeeded. */
  readonly error: string | null;
  readonly isPinned: boolean;
};

export async function listSharedQueries(signal: AbortSignal): Promise<SharedQueryList["queries"]> {
  return (await adminCall<SharedQueryList>("GET /queries", { signal })).queries;
}

export function shareQuery(query: SavedQuery): Promise<SharedQuery> {
  return adminCall("POST /queries", { body: query });
}

export async function deleteSharedQuery(name: string): Promise<void> {
  await request(`/admin/v1/queries/${encodeURIComponent(name)}`, { method: "DELETE", as: "administrator" });
}

const MAX_HISTORY = 200;
const MAX_KEPT_CHARACTERS = 20_000;

export const openTabs = storedValue("studio.sql.tabs", isOpenTabs, firstTab());
export const savedQueries = storedValue(
  "studio.sql.saved",
  (stored) => isListOf<SavedQuery>(["name", "text"], stored),
  [],
);
export const queryHistory = storedValue(
  "studio.sql.history",
  (stored) => isListOf<HistoryEntry>(["id", "text", "as"], stored),
  [],
);

function firstTab(): OpenTabs {
  const tab = { id: newId(), name: "", text: "" };
  return { tabs: [tab], current: tab.id };
}

export function addTab({ tabs }: OpenTabs, text = "", name = ""): OpenTabs {
  const tab = { id: newId(), name, text };
  return { tabs: [...tabs, tab], current: tab.id };
}

export function changeTab(open: OpenTabs, id: string, changes: Partial<Omit<QueryTab, "id">>): OpenTabs {
  return { ...open, tabs: open.tabs.map((tab) => (tab.id === id ? { ...tab, ...changes } : tab)) };
}

/** Closes a tab and shows its neighbour; an empty tab replaces the last one. */
export function closeTab({ tabs, current }: OpenTabs, id: string): OpenTabs {
  const index = tabs.findIndex((tab) => tab.id === id);
  const rest = tabs.filter((tab) => tab.id !== id);
  if (rest.length === 0) return firstTab();
  return { tabs: rest, current: current === id ? rest[Math.min(index, rest.length - 1)]!.id : current };
}

/** Moves the same text of the same caller to the front; removes the oldest entries that are not pinned. */
export function addToHistory(
  entries: readonly HistoryEntry[],
  added: Omit<HistoryEntry, "id" | "isPinned">,
): readonly HistoryEntry[] {
  if (added.text.length > MAX_KEPT_CHARACTERS) return entries;
  const isSame = (entry: HistoryEntry) => entry.text === added.text && entry.as === added.as;
  const known = entries.find(isSame);
  const others = entries.filter((entry) => !isSame(entry));
  let unpinned = 1;
  const kept = others.filter((entry) => entry.isPinned || unpinned++ < MAX_HISTORY);
  return [{ ...added, id: known?.id ?? newId(), isPinned: known?.isPinned ?? false }, ...kept];
}

/** Returns pinned entries first, then the latest; all words must be in the text. */
export function searchHistory(entries: readonly HistoryEntry[], words: string): readonly HistoryEntry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return entries
    .filter(({ text }) => wanted.every((word) => text.toLowerCase().includes(word)))
    .toSorted((one, other) => Number(other.isPinned) - Number(one.isPinned) || other.at - one.at);
}

/** Saves a query, and replaces one of the same name. */
export function saveQuery(saved: readonly SavedQuery[], query: SavedQuery): readonly SavedQuery[] {
  return [...saved.filter(({ name }) => name !== query.name), query].toSorted((one, other) =>
    one.name.localeCompare(other.name),
  );
}

function newId(): string {
  return Math.random().toString(36).slice(2);
}

/** Makes a store that this browser keeps. */
function storedValue<Value>(
  key: string,
  isExpected: (stored: unknown) => stored is Value,
  initial: Value,
): Store<Value> {
  const store = makeStore<Value>(readStoredJson(key, isExpected) ?? initial);
  store.subscribe((value) => writeStoredJson(key, value));
  return store;
}

function isOpenTabs(stored: unknown): stored is OpenTabs {
  if (!isJsonObject(stored) || !isListOf<QueryTab>(["id", "name", "text"], stored.tabs)) return false;
  return stored.tabs.some(({ id }) => id === stored.current);
}

function isListOf<Item>(textMembers: readonly (keyof Item & string)[], stored: unknown): stored is readonly Item[] {
  const isItem = (item: unknown) => isJsonObject(item) && textMembers.every((name) => typeof item[name] === "string");
  return Array.isArray(stored) && stored.every(isItem);
}
