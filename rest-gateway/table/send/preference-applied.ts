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

/** What of the client's preferences was heeded, of those that mean something for the request; null when nothing was. */
export function preferenceApplied(preferences: Preferences, meaningful: readonly PreferenceName[]): string | null {
  const names = Object.keys(SPELLED) as PreferenceName[];
  const isHeeded = (name: PreferenceName) => name !== "maxAffected" || preferences.handling === "strict";
  const applied = names.filter((name) => meaningful.includes(name) && isHeeded(name) && preferences[name] !== null);
  return applied.length > 0 ? applied.map((name) => `${SPELLED[name]}=${preferences[name]}`).join(", ") : null;
}
