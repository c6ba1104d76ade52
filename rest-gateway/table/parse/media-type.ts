/**
 * A media type as PostgREST tells them apart. Its own ones have parameters that mean something; of the others only the name
 * counts.
 */
export type MediaType =
  | { readonly kind: "named"; readonly name: string }
  /** One JSON object in place of an array. */
  | { readonly kind: "object"; readonly nulls: "kept" | "stripped" }
  | { readonly kind: "array"; readonly nulls: "stripped" }
  | {
      readonly kind: "plan";
      readonly for: MediaType;
      readonly format: "text" | "json";
      readonly options: readonly PlanOption[];
    };

const PLAN_OPTIONS = ["analyze", "verbose", "settings", "buffers", "wal"] as const;
export type PlanOption = (typeof PLAN_OPTIONS)[number];

/** Types whose parameters do not matter. */
const NAMED: ReadonlyMap<string, MediaType> = new Map(
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
  ].map((name) => [name, { kind: "named", name }]),
);

const JSON_TYPE = NAMED.get("application/json")!;
export const ANY_TYPE = NAMED.get("*/*")!;

const TYPE = /[a-z\d.*]+\/[a-z\d.*+-]+/iy;
const PARAMETER = /\s*;\s*([a-z\d-]+)\s*=\s*(?:"([^"]*)"|([a-z\d|-]+))/iy;

/** `application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|verbose` */
export function parseMediaType(text: string): MediaType {
  const named = NAMED.get(text);
  if (named !== undefined) return named;
  TYPE.lastIndex = 0;
  const type = TYPE.exec(text)?.[0].toLowerCase() ?? "";
  switch (type) {
    case "application/vnd.pgrst.object":
    case "application/vnd.pgrst.object+json":
      return { kind: "object", nulls: stripsNulls(text, type) ? "stripped" : "kept" };
    case "application/vnd.pgrst.array":
    case "application/vnd.pgrst.array+json":
      return stripsNulls(text, type) ? { kind: "array", nulls: "stripped" } : JSON_TYPE;
    case "application/vnd.pgrst.plan":
    case "application/vnd.pgrst.plan+text":
    case "application/vnd.pgrst.plan+json":
      return toPlan(type.endsWith("+json") ? "json" : "text", parametersOf(text, type));
    default:
      return NAMED.get(type) ?? { kind: "named", name: text };
  }
}

/** A body is JSON unless it says otherwise. */
export function parseContentType(header: string | undefined): MediaType {
  return header === undefined ? JSON_TYPE : parseMediaType(header);
}

/** As `Content-Type` and messages name it. */
export function nameOf(type: MediaType): string {
  switch (type.kind) {
    case "named":
      return type.name;
    case "object":
      return `application/vnd.pgrst.object+json${type.nulls === "stripped" ? ";nulls=stripped" : ""}`;
    case "array":
      return "application/vnd.pgrst.array+json;nulls=stripped";
    case "plan": {
      const options = type.options.length > 0 ? `; options=${type.options.join("|")}` : "";
      return `application/vnd.pgrst.plan+${type.format}; for="${nameOf(type.for)}"${options}`;
    }
  }
}

function stripsNulls(text: string, type: string): boolean {
  return parametersOf(text, type).get("nulls") === "stripped";
}

function toPlan(format: "text" | "json", parameters: ReadonlyMap<string, string>): MediaType {
  const options = parameters.get("options")?.split("|") ?? [];
  return {
    kind: "plan",
    for: parseMediaType(parameters.get("for") ?? "application/json"),
    format,
    options: PLAN_OPTIONS.filter((option) => options.includes(option)),
  };
}

function parametersOf(text: string, type: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  PARAMETER.lastIndex = type.length;
  for (let match = PARAMETER.exec(text); match !== null; match = PARAMETER.exec(text)) {
    parameters.set(match[1]!.toLowerCase(), match[2] ?? match[3]!);
  }
  return parameters;
}
