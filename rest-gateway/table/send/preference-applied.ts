import type { Preferences } from "../parse/preferences.ts";

/** In PostgREST's order. */
const SPELLED = {
  resolution: "resolution",
  missing: "missing",
  return: "return",
  count: "count",
  tx: "tx",
  handling: "handling",
  timezone: "timezone",
  maxAffected: "max-affected",
} as const;
export type PreferenceName = keyof typeof SPELLED;
const NAMES = Object.keys(SPELLED) as PreferenceName[];

/** What of the client's preferences was heeded, of those that mean something for the request; null when nothing was. */
export function preferenceApplied(preferences: Preferences, meaningful: readonly PreferenceName[]): string | null {
  const isHeeded = (name: PreferenceName) => name !== "maxAffected" || preferences.handling === "strict";
  const applied = NAMES.filter((name) => preferences[name] !== null && meaningful.includes(name) && isHeeded(name));
  return applied.length > 0 ? applied.map((name) => `${SPELLED[name]}=${preferences[name]}`).join(", ") : null;
}
