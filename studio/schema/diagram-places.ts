import { isJsonObject, readStoredJson, writeStoredJson } from "../stored-json.ts";
import type { Point } from "./layout.ts";

const keyOf = (database: string) => `studio.diagram.${database}`;

/** Where boxes were dragged to, by table; kept in the browser. */
export function readPlaces(database: string): ReadonlyMap<string, Point> {
  const stored = readStoredJson(keyOf(database), isJsonObject) ?? {};
  return new Map(Object.entries(stored).filter((entry): entry is [string, Point] => isPoint(entry[1])));
}

export function savePlaces(database: string, places: ReadonlyMap<string, Point>): void {
  writeStoredJson(keyOf(database), Object.fromEntries(places));
}

function isPoint(value: unknown): value is Point {
  return isJsonObject(value) && Number.isFinite(value.x) && Number.isFinite(value.y);
}
