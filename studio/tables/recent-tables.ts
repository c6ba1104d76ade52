import { type DescribedName, isSameName } from "../api/catalog.ts";
import { isJsonObject, readStoredJson, writeStoredJson } from "../stored-json.ts";

const MAX_RECENT = 8;

/** Different projects are served at the same address, one after the other. */
const storageKey = (project: string) => `studio.recent-tables.${project}`;

/** Returns the tables that were opened last in this browser, the last one first. */
export function readRecentTables(project: string): readonly DescribedName[] {
  return readStoredJson(storageKey(project), isListOfNames) ?? [];
}

export function storeRecentTable(project: string, { schema, name }: DescribedName): void {
  const others = readRecentTables(project).filter((each) => !isSameName(each, { schema, name }));
  writeStoredJson(storageKey(project), [{ schema, name }, ...others].slice(0, MAX_RECENT));
}

function isListOfNames(stored: unknown): stored is DescribedName[] {
  return (
    Array.isArray(stored) &&
    stored.every((each) => isJsonObject(each) && typeof each.schema === "string" && typeof each.name === "string")
  );
}
