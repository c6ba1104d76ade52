import { ApiError } from "../../../engine/errors.ts";

/** What the client would like (RFC 7240); null where it does not say. */
export type Preferences = { readonly [Name in Choice]: (typeof VALUES)[Name][number] | null } & {
  readonly timezone: string | null;
  readonly maxAffected: number | null;
};

const VALUES = {
  resolution: ["merge-duplicates", "ignore-duplicates"],
  return: ["representation", "headers-only", "minimal"],
  count: ["exact", "planned", "estimated"],
  tx: ["commit", "rollback"],
  missing: ["default", "null"],
  handling: ["strict", "lenient"],
} as const;

type Choice = keyof typeof VALUES;

/** What the deployment lets a client choose. */
export type Choices = { readonly txOverride: boolean; readonly timeZones: ReadonlySet<string> };

/** Heard elsewhere: whether the work may be left for later. */
const ASIDE: readonly string[] = ["respond-async", "wait"];

/** `-4`, `05:30`. No longer ones: a zone of the client's own making can harm the server (CVE-2026-14669). */
const OFFSET = /^[+-]?(0?\d|1[0-5])(:[0-5]\d)?$/;

const NONE = toPreferences(new Map(), { txOverride: false });

/** `return=representation, count=exact`; the first of each name counts. */
export function parsePreferences(header: string | undefined, choices: Choices): Preferences {
  if (header === undefined) return NONE;
  const said = new Map<string, string>();
  const invalid: string[] = [];
  for (const part of header.split(",")) {
    const preference = part.trim();
    const [name = "", value = ""] = preference.split("=", 2);
    if (!isKnown(name, value, choices)) invalid.push(preference);
    else if (!said.has(name)) said.set(name, value);
  }
  if (said.get("handling") === "strict" && invalid.length > 0) {
    throw new ApiError(400, "PGRST122", "Invalid preferences given with handling=strict", {
      details: `Invalid preferences: ${invalid.join(", ")}`,
    });
  }
  return toPreferences(said, choices);
}

function isKnown(name: string, value: string, { timeZones }: Choices): boolean {
  if (name === "timezone") return timeZones.has(value) || OFFSET.test(value);
  if (name === "max-affected" || ASIDE.includes(name)) return true;
  return Object.hasOwn(VALUES, name) && (VALUES[name as Choice] as readonly string[]).includes(value);
}

function toPreferences(said: ReadonlyMap<string, string>, { txOverride }: Pick<Choices, "txOverride">): Preferences {
  const maxAffected = said.get("max-affected") ?? "";
  return {
    resolution: choice("resolution"),
    return: choice("return"),
    count: choice("count"),
    tx: txOverride ? choice("tx") : null,
    missing: choice("missing"),
    handling: choice("handling"),
    timezone: said.get("timezone") ?? null,
    maxAffected: /^-?\d+$/.test(maxAffected) ? Number(maxAffected) : null,
  };

  function choice<Name extends Choice>(name: Name): Preferences[Name] {
    return (said.get(name) as Preferences[Name] | undefined) ?? null;
  }
}
