import type { GatewayRequest } from "#http";
import { invalidShape, parseNames, type ShapeParameters } from "#live";
import type { Lsn } from "#postgres/database";

export type ShapeRequest = ShapeParameters & {
  readonly isFullReplica: boolean;
  readonly hasChangesOnly: boolean;
  /** Null: the rows as they are now, for `now` without the rows. */
  readonly offset: Lsn | null;
  readonly handle: string | null;
  readonly expiredHandle: string | null;
  readonly mode: "once" | "long poll" | "events";
  readonly cursor: string;
};

const OFFSET = /^(\d{1,20})_(\d{1,19}|inf)$/;
const VALUE = /^params\[(\d{1,4})\]$/;

export function parseShapeRequest({ rawQuery }: Pick<GatewayRequest, "rawQuery">): ShapeRequest {
  const query = new URLSearchParams(rawQuery);
  const text = query.get("offset") ?? "";
  const offset = parseOffset(text);
  const handle = query.get("handle");
  if (offset !== null && handle === null) throw invalidShape("handle is required with an offset");
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
  };
}

function required(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (value === null || value === "") throw invalidShape(`${name} is required`);
  return value;
}

/** All changes of one commit have one offset. */
function parseOffset(text: string): Lsn | null {
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

/** `params[1]=…`, or an object or array in JSON. */
function parseValues(query: URLSearchParams): Map<number, string> {
  const values = new Map<number, string>();
  for (const [name, value] of query) {
    const number = VALUE.exec(name)?.[1];
    if (number !== undefined) values.set(Number(number), value);
  }
  return values;
}
