import { HttpError } from "../../../http/http-error.ts";

/** The client's preferences (RFC 7240); null if not stated. */
export type Preferences = { readonly [Name in PreferenceChoice]: (typeof PREFERENCE_VALUES)[Name][number] | null } & {
  readonly timezone: string | null;
  readonly maxAffected: number | null;
};

const PREFERENCE_VALUES = {
  resolution: ["merge-duplicates", "ignore-duplicates"],
  return: ["representation", "headers-only", "minimal"],
  count: ["exact", "planned", "estimated"],
  tx: ["commit", "rollback"],
  missing: ["default", "null"],
  handling: ["strict", "lenient"],
} as const;

type PreferenceChoice = keyof typeof PREFERENCE_VALUES;

/** What the deployment lets a client choose. */
export type PreferenceRules = { readonly txOverride: boolean; readonly timeZones: ReadonlySet<string> };

/** Heard elsewhere: whether the work may be left for later. */
const HANDLED_ELSEWHERE: readonly string[] = ["respond-async", "wait"];

/** `-4`, `05:30`. No longer ones: a zone of the client's own making can harm the server (CVE-2026-14669). */
const TIME_ZONE_OFFSET = /^[+-]?(0?\d|1[0-5])(:[0-5]\d)?$/;

const NO_PREFERENCES = toPreferences(new Map(), { txOverride: false });

/** `return=representation, count=exact`; the first of each name counts. */
export function parsePreferences(header: string | undefined, rules: PreferenceRules): Preferences {
  if (header === undefined) return NO_PREFERENCES;
  const preferences = new Map<string, string>();
  const invalid: string[] = [];
  for (const part of header.split(",")) {
    const preference = part.trim();
    const [name = "", value = ""] = preference.split("=", 2);
    if (!isValidPreference(name, value, rules)) invalid.push(preference);
    else if (!preferences.has(name)) preferences.set(name, value);
  }
  if (preferences.get("handling") === "strict" && invalid.length > 0) {
    throw new HttpError(400, "PGRST122", "Invalid preferences given with handling=strict", {
      details: `Invalid preferences: ${invalid.join(", ")}`,
    });
  }
  return toPreferences(preferences, rules);
}

function isValidPreference(name: string, value: string, { timeZones }: PreferenceRules): boolean {
  if (name === "timezone") return timeZones.has(value) || TIME_ZONE_OFFSET.test(value);
  if (name === "max-affected" || HANDLED_ELSEWHERE.includes(name)) return true;
  return (
    Object.hasOwn(PREFERENCE_VALUES, name) &&
    (PREFERENCE_VALUES[name as PreferenceChoice] as readonly string[]).includes(value)
  );
}

function toPreferences(
  preferences: ReadonlyMap<string, string>,
  { txOverride }: Pick<PreferenceRules, "txOverride">,
): Preferences {
  const maxAffected = preferences.get("max-affected") ?? "";
  return {
    resolution: choice("resolution"),
    return: choice("return"),
    count: choice("count"),
    tx: txOverride ? choice("tx") : null,
    missing: choice("missing"),
    handling: choice("handling"),
    timezone: preferences.get("timezone") ?? null,
    maxAffected: /^-?\d+$/.test(maxAffected) ? Number(maxAffected) : null,
  };

  function choice<Name extends PreferenceChoice>(name: Name): Preferences[Name] {
    return (preferences.get(name) as Preferences[Name] | undefined) ?? null;
  }
}
