import { HttpError, readMediaRanges } from "#http";
import type { ExplainOption, ResponseFormat } from "#planner/intent";
import { memoizePerObject } from "#runtime";

const EXPLAIN_OPTIONS: readonly ExplainOption[] = ["analyze", "verbose", "settings", "buffers", "wal"];

/** Types whose parameters are ignored. */
const KNOWN_TYPES: ReadonlyMap<string, ResponseFormat> = new Map(
  [
    "application/json",
    "application/geo+json",
    "application/openapi+json",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
    "text/csv",
    "text/plain",
    "text/xml",
    "*/*",
  ].map((type) => [type, { kind: "media", type }]),
);

const OBJECT_FORMAT: ResponseFormat = { kind: "object", type: "application/vnd.pgrst.object+json", nulls: "kept" };
const STRIPPED_OBJECT_FORMAT: ResponseFormat = {
  kind: "object",
  type: "application/vnd.pgrst.object+json;nulls=stripped",
  nulls: "stripped",
};
const STRIPPED_ARRAY_FORMAT: ResponseFormat = {
  kind: "array",
  type: "application/vnd.pgrst.array+json;nulls=stripped",
  nulls: "stripped",
};
const JSON_FORMAT = KNOWN_TYPES.get("application/json")!;
const ANY_FORMAT = KNOWN_TYPES.get("*/*")!;

const MEDIA_TYPE = /[a-z\d.*]+\/[a-z\d.*+-]+/iy;
const MEDIA_TYPE_PARAMETER = /\s*;\s*([a-z\d-]+)\s*=\s*(?:"([^"]*)"|([a-z\d|-]+))/iy;

/**
 * Parses `application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|verbose`: PostgREST's own types have parameters with a
 * meaning; of others only the name counts.
 */
export function parseMediaType(text: string): ResponseFormat {
  const named = KNOWN_TYPES.get(text);
  if (named !== undefined) return named;
  MEDIA_TYPE.lastIndex = 0;
  const type = MEDIA_TYPE.exec(text)?.[0].toLowerCase() ?? "";
  switch (type) {
    case "application/vnd.pgrst.object":
    case "application/vnd.pgrst.object+json":
      return stripsNulls(text, type) ? STRIPPED_OBJECT_FORMAT : OBJECT_FORMAT;
    case "application/vnd.pgrst.array":
    case "application/vnd.pgrst.array+json":
      return stripsNulls(text, type) ? STRIPPED_ARRAY_FORMAT : JSON_FORMAT;
    case "application/vnd.pgrst.plan":
    case "application/vnd.pgrst.plan+text":
    case "application/vnd.pgrst.plan+json":
      return toExplainFormat(type.endsWith("+json") ? "json" : "text", mediaTypeParameters(text, type));
    default:
      return KNOWN_TYPES.get(type) ?? { kind: "media", type: text };
  }
}

/** Parses the type of a body; JSON without the header. */
export function parseContentType(header: string | undefined): ResponseFormat {
  return header === undefined ? JSON_FORMAT : parseMediaType(header);
}

function stripsNulls(text: string, type: string): boolean {
  return mediaTypeParameters(text, type).get("nulls") === "stripped";
}

function toExplainFormat(as: "text" | "json", parameters: ReadonlyMap<string, string>): ResponseFormat {
  const of = parseMediaType(parameters.get("for") ?? "application/json");
  const requested = parameters.get("options")?.split("|") ?? [];
  const options = EXPLAIN_OPTIONS.filter((option) => requested.includes(option));
  const suffix = options.length > 0 ? `; options=${options.join("|")}` : "";
  return { kind: "plan", type: `application/vnd.pgrst.plan+${as}; for="${of.type}"${suffix}`, of, as, options };
}

function mediaTypeParameters(text: string, type: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  MEDIA_TYPE_PARAMETER.lastIndex = type.length;
  for (let match = MEDIA_TYPE_PARAMETER.exec(text); match !== null; match = MEDIA_TYPE_PARAMETER.exec(text)) {
    parameters.set(match[1]!.toLowerCase(), match[2] ?? match[3]!);
  }
  return parameters;
}

/** Returns the formats that the client accepts, best first. */
export function parseAccept(header: string | undefined): readonly ResponseFormat[] {
  if (header === undefined) return [ANY_FORMAT];
  if (!/[,; ]/.test(header)) return [parseMediaType(header)];
  return readMediaRanges(header).map(({ type }) => parseMediaType(type));
}

/** The client's preferences (RFC 7240); null if not stated. */
export type Preferences = { readonly [Name in PreferenceChoice]: (typeof PREFERENCE_VALUES)[Name][number] | null } & {
  /** True if values may be operators; `Prefer: operators` has no value. */
  readonly operators: true | null;
  /** True if the response has an ETag; `Prefer: etag` has no value. */
  readonly etag: true | null;
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
  nested: ["insert", "update", "upsert", "replace"],
  removed: ["delete", "unlink"],
} as const;

type PreferenceChoice = keyof typeof PREFERENCE_VALUES;

/** The preferences that the deployment allows. */
export type PreferenceRules = { readonly txOverride: boolean; readonly timeZones: ReadonlySet<string> };

/** Preferences that the pipeline handles, because they concern asynchronous execution. */
const HANDLED_ELSEWHERE: readonly string[] = ["respond-async", "wait"];

/** An offset such as `-4`, `05:30`. Longer texts are refused: a POSIX time zone string from a client can harm the server (CVE-2026-14669). */
const TIME_ZONE_OFFSET = /^[+-]?(0?\d|1[0-5])(:[0-5]\d)?$/;

const NO_PREFERENCES = toPreferences(new Map(), { txOverride: false });

/** Parses `return=representation, count=exact`; the first of each name counts. */
export function parsePreferences(header: string | undefined, rules: PreferenceRules): Preferences {
  if (header === undefined) return NO_PREFERENCES;
  const preferences = new Map<string, string>();
  const invalid: string[] = [];
  for (const part of header.split(",")) {
    const preference = part.trim();
    const [name = "", value = ""] = preference.split("=", 2);
    if (!isValidPreference(name, value, rules)) {
      if (name === "timezone" && rules.timeZones.size > 0) throw unknownTimeZone(value);
      invalid.push(preference);
    } else if (!preferences.has(name)) preferences.set(name, value);
  }
  if (preferences.get("handling") === "strict" && invalid.length > 0) {
    throw new HttpError(400, "PGRST122", "Invalid preferences given with handling=strict", {
      details: `Invalid preferences: ${invalid.join(", ")}`,
    });
  }
  return toPreferences(preferences, rules);
}

function isValidPreference(name: string, value: string, { timeZones }: PreferenceRules): boolean {
  if (name === "timezone") return TIME_ZONE_OFFSET.test(value) || isTimeZone(value, timeZones);
  if (name === "operators" || name === "etag") return value === "";
  if (name === "max-affected" || HANDLED_ELSEWHERE.includes(name)) return true;
  return (
    Object.hasOwn(PREFERENCE_VALUES, name) &&
    (PREFERENCE_VALUES[name as PreferenceChoice] as readonly string[]).includes(value)
  );
}

const inLowerCase = memoizePerObject(
  (names: ReadonlySet<string>) => new Set([...names].map((name) => name.toLowerCase())),
);

/** Returns true for a known time zone, without regard to case, as in Postgres. */
function isTimeZone(value: string, timeZones: ReadonlySet<string>): boolean {
  return timeZones.has(value) || inLowerCase(timeZones).has(value.toLowerCase());
}

/** Returns Postgres's error, which PostgREST returns since version 16 for any `handling`. */
function unknownTimeZone(value: string): HttpError {
  return new HttpError(400, "22023", `invalid value for parameter "TimeZone": "${value}"`);
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
    nested: choice("nested"),
    removed: choice("removed"),
    operators: preferences.has("operators") || null,
    etag: preferences.has("etag") || null,
    timezone: preferences.get("timezone") ?? null,
    maxAffected: /^-?\d+$/.test(maxAffected) ? Math.min(Number(maxAffected), Number.MAX_SAFE_INTEGER) : null,
  };

  function choice<Name extends PreferenceChoice>(name: Name): Preferences[Name] {
    return (preferences.get(name) as Preferences[Name] | undefined) ?? null;
  }
}
