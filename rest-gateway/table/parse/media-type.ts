import type { Format, PlanOption } from "../../statement/intent.ts";

const PLAN_OPTIONS: readonly PlanOption[] = ["analyze", "verbose", "settings", "buffers", "wal"];

/** Types whose parameters do not matter. */
const NAMED: ReadonlyMap<string, Format> = new Map(
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

const OBJECT: Format = { kind: "object", type: "application/vnd.pgrst.object+json", nulls: "kept" };
const STRIPPED_OBJECT: Format = {
  kind: "object",
  type: "application/vnd.pgrst.object+json;nulls=stripped",
  nulls: "stripped",
};
const STRIPPED_ARRAY: Format = {
  kind: "array",
  type: "application/vnd.pgrst.array+json;nulls=stripped",
  nulls: "stripped",
};
const JSON_TYPE = NAMED.get("application/json")!;
export const ANY_TYPE = NAMED.get("*/*")!;

const TYPE = /[a-z\d.*]+\/[a-z\d.*+-]+/iy;
const PARAMETER = /\s*;\s*([a-z\d-]+)\s*=\s*(?:"([^"]*)"|([a-z\d|-]+))/iy;

/**
 * `application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|verbose`: PostgREST's own types have parameters that
 * mean something; of the others only the name counts.
 */
export function parseMediaType(text: string): Format {
  const named = NAMED.get(text);
  if (named !== undefined) return named;
  TYPE.lastIndex = 0;
  const type = TYPE.exec(text)?.[0].toLowerCase() ?? "";
  switch (type) {
    case "application/vnd.pgrst.object":
    case "application/vnd.pgrst.object+json":
      return stripsNulls(text, type) ? STRIPPED_OBJECT : OBJECT;
    case "application/vnd.pgrst.array":
    case "application/vnd.pgrst.array+json":
      return stripsNulls(text, type) ? STRIPPED_ARRAY : JSON_TYPE;
    case "application/vnd.pgrst.plan":
    case "application/vnd.pgrst.plan+text":
    case "application/vnd.pgrst.plan+json":
      return toPlan(type.endsWith("+json") ? "json" : "text", parametersOf(text, type));
    default:
      return NAMED.get(type) ?? { kind: "media", type: text };
  }
}

/** A body is JSON unless it says otherwise. */
export function parseContentType(header: string | undefined): Format {
  return header === undefined ? JSON_TYPE : parseMediaType(header);
}

function stripsNulls(text: string, type: string): boolean {
  return parametersOf(text, type).get("nulls") === "stripped";
}

function toPlan(as: "text" | "json", parameters: ReadonlyMap<string, string>): Format {
  const of = parseMediaType(parameters.get("for") ?? "application/json");
  const asked = parameters.get("options")?.split("|") ?? [];
  const options = PLAN_OPTIONS.filter((option) => asked.includes(option));
  const also = options.length > 0 ? `; options=${options.join("|")}` : "";
  return { kind: "plan", type: `application/vnd.pgrst.plan+${as}; for="${of.type}"${also}`, of, as, options };
}

function parametersOf(text: string, type: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  PARAMETER.lastIndex = type.length;
  for (let match = PARAMETER.exec(text); match !== null; match = PARAMETER.exec(text)) {
    parameters.set(match[1]!.toLowerCase(), match[2] ?? match[3]!);
  }
  return parameters;
}
