import type { Point } from "./layout.ts";

const keyOf = (database: string) => `studio.diagram.${database}`;

/** Where boxes were dragged to, by table; kept in the browser. */
export function readPlaces(database: string): ReadonlyMap<string, Point> {
  try {
    const stored = JSON.parse(localStorage.getItem(keyOf(database)) ?? "{}") as Record<string, Point>;
    return new Map(Object.entries(stored).filter(([, { x, y }]) => Number.isFinite(x) && Number.isFinite(y)));
  } catch {
    return new Map();
  }
}

export function savePlaces(database: string, places: ReadonlyMap<string, Point>): void {
  localStorage.setItem(keyOf(database), JSON.stringify(Object.fromEntries(places)));
}
