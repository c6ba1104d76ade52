import { invalidShape, parseNames, type ShapeParameters, type ShapePosition, type ShapeSubset } from "#live";

export type ShapeRequest = ShapeParameters & {
  readonly isFullReplica: boolean;
  readonly hasChangesOnly: boolean;
  /** The position; null for the rows as they are now, and, if the client sends `now`, without these rows. */
  readonly offset: ShapePosition | null;
  readonly handle: string | null;
  readonly expiredHandle: string | null;
  readonly mode: "once" | "long poll" | "events";
  readonly cursor: string;
  /** Rows to read once, instead of messages of the log. */
  readonly subset: ShapeSubset | null;
};

const OFFSET = /^(\d{1,30})_(\d{1,19}|inf)$/;
/** The pattern of a handle, which is returned in a header. */
const HANDLE = /^[\w.~-]{1,100}$/;
const VALUE = /^params\[(\d{1,4})\]$/;

/** Parses a request; `body` is the subset of a POST as JSON. */
export function parseShapeRequest(rawQuery: string, body: string | null): ShapeRequest {
  const query = new URLSearchParams(rawQuery);
  const text = query.get("offset") ?? "";
  const offset = parseOffset(text);
  const handle = query.get("handle");
  if (offset !== null && handle === null) throw invalidShape("handle is required with an offset");
  if (handle !== null && !HANDLE.test(handle)) throw invalidShape("handle must be that of a response");
  const isLive = readFlag(query, "live") && offset !== null;
  const hasEvents = readFlag(query, "live_sse") || readFlag(query, "experimental_live_sse");
  const columns = query.get("columns");
  return {
    table: parseNames(required(query, "table"), "table", "."),
    where: query.get("where"),
    values: parseValues(query),
    columns: columns === null ? null : parseNames(columns, "columns", ","),
    isFullReplica: readChoice(query, "replica", ["default", "full"]) === "full",
    hasChangesOnly: readChoice(query, "log", ["full", "changes_only"]) === "changes_only" || text === "now",
    offset,
    handle,
    expiredHandle: query.get("expired_handle"),
    mode: !isLive ? "once" : hasEvents ? "events" : "long poll",
    cursor: query.get("cursor") ?? "",
    subset: body === null ? parseSubset((name) => query.get(`subset__${name}`)) : parseSubsetBody(body),
  };
}

function required(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (value === null || value === "") throw invalidShape(`${name} is required`);
  return value;
}

/** Parses an offset. All changes of one commit have one offset. */
function parseOffset(text: string): ShapePosition | null {
  if (text === "-1" || text === "now") return null;
  const found = OFFSET.exec(text);
  if (!found) throw invalidShape("offset must be -1, now, or the offset of a response");
  return BigInt(found[1]!);
}

function readFlag(query: URLSearchParams, name: string): boolean {
  return readChoice(query, name, ["false", "true"]) === "true";
}

function readChoice(query: URLSearchParams, name: string, choices: readonly string[]): string {
  const value = query.get(name) ?? choices[0]!;
  if (!choices.includes(value)) throw invalidShape(`${name} must be ${choices.join(" or ")}`);
  return value;
}

/** Parses the parameters `params[1]=…`. */
function parseValues(query: URLSearchParams): Map<number, string> {
  const values = new Map<number, string>();
  for (const [name, value] of query) {
    const number = VALUE.exec(name)?.[1];
    if (number !== undefined) values.set(Number(number), value);
  }
  return values;
}

function parseSubsetBody(body: string): ShapeSubset | null {
  const parsed = parseJson(body, "the body");
  const textOf = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  return parseSubset((name) => (Object.hasOwn(parsed, name) ? textOf(Reflect.get(parsed, name)) : null));
}

function parseSubset(read: (name: string) => string | null): ShapeSubset | null {
  const [where, orderBy, params] = [read("where"), read("order_by"), read("params")];
  const [limit, offset] = [parseCount("limit", read("limit")), parseCount("offset", read("offset"))];
  if ([where, orderBy, params, limit, offset].every((value) => value === null)) return null;
  return { where, orderBy, limit, offset, values: parseJsonValues(params) };
}

function parseCount(name: string, text: string | null): number | null {
  if (text !== null && !/^\d{1,9}$/.test(text)) throw invalidShape(`subset__${name} must be a number`);
  return text === null ? null : Number(text);
}

/** Parses an object with numbers as names, or an array. */
function parseJsonValues(text: string | null): Map<number, string> {
  const parsed = text === null ? {} : parseJson(text, "subset__params");
  const first = Array.isArray(parsed) ? 1 : 0;
  return new Map(Object.entries(parsed).map(([name, value]) => [Number(name) + first, String(value)]));
}

function parseJson(text: string, where: string): object {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {
    // The invalid text is refused below.
  }
  throw invalidShape(`${where} must be an object in JSON`);
}
