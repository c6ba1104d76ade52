import { randomInt } from "node:crypto";
import { CREDENTIAL_VARY, type GatewayRequest, type GatewayResponse, jsonResponse, matchesTag } from "#http";
import type { LiveSource, ShapeDefinition, ShapePosition } from "#live";
import { MUST_REFETCH, type ShapeMessage, toOffset, upToDate } from "./shape-messages.ts";
import type { ShapeRequest } from "./shape-request.ts";

/** A request of a shape, with the results of its stages. */
export type ShapeCall = {
  readonly received: GatewayRequest;
  readonly parsed: ShapeRequest;
  readonly definition: ShapeDefinition;
  readonly source: LiveSource;
};

const PRIVATE = { "Cache-Control": "private, no-store" };
/** The length of the time steps that a cursor counts. */
const CURSOR_SECONDS = 20;

/** Returns the headers of a response with messages up to this position. */
export function shapeHeaders({ parsed, definition }: ShapeCall, handle: string, position: ShapePosition) {
  return {
    "electric-handle": handle,
    "electric-offset": toOffset(position),
    "electric-schema": schemaHeader(definition),
    // A client that sends the cursor of its last stream takes first rows with it for a replay by a cache, and does not show them.
    ...(parsed.mode !== "once" && { "electric-cursor": nextCursor(parsed.cursor) }),
  };
}

/**
 * Returns all messages up to this position, and the transactions that they do not name. Only responses to callers without credentials may
 * be cached for others.
 */
export function messagesResponse(
  call: ShapeCall,
  handle: string,
  { position, messages, xids }: { position: ShapePosition; messages: readonly ShapeMessage[]; xids: readonly number[] },
): GatewayResponse {
  const headers = {
    ...shapeHeaders(call, handle, position),
    "electric-up-to-date": "",
    "electric-has-data": String(messages.length > 0),
  };
  const body = [...messages, upToDate(position, xids)];
  const { caller, isPrivate } = call.source;
  if (isPrivate || caller.kind !== "anonymous") return jsonResponse(200, body, { ...headers, ...PRIVATE });
  const { parsed, received } = call;
  const from = parsed.offset === null ? "-1" : toOffset(parsed.offset);
  // The rows stay the same after transactions that have not changed them.
  const lastXid = parsed.offset === null ? undefined : xids.at(-1);
  const tag = `"${handle}:${from}:${headers["electric-offset"]}:${lastXid ?? ""}"`;
  const cached = {
    ...headers,
    ETag: tag,
    "Cache-Control": "public, max-age=5, stale-while-revalidate=5",
    // Other callers get other rows at the same address.
    Vary: CREDENTIAL_VARY,
  };
  if (parsed.mode === "once" && matchesTag(received.headers["if-none-match"], tag))
    return { status: 304, headers: cached, body: null };
  return jsonResponse(200, body, cached);
}

type SubsetResult = {
  /** The position that the following changes come after. */
  readonly offset: ShapePosition;
  readonly data: readonly ShapeMessage[];
  /** The value of `pg_current_snapshot()`. */
  readonly snapshot: string;
};

/**
 * Returns rows that were read once, with their snapshot. A client drops changes whose last transaction is in the snapshot, until a change
 * is past `database_lsn`. A change may name transactions of which one is in the snapshot and an earlier one is not, so all are past it.
 */
export function subsetResponse(call: ShapeCall, handle: string, result: SubsetResult): GatewayResponse {
  const [xmin, xmax, running = ""] = result.snapshot.split(":");
  const metadata = {
    snapshot_mark: randomInt(2 ** 31),
    database_lsn: String(result.offset),
    ...{ xmin, xmax, xip_list: running === "" ? [] : running.split(",") },
  };
  return jsonResponse(
    200,
    { metadata, data: result.data },
    { ...shapeHeaders(call, handle, result.offset), ...PRIVATE },
  );
}

/** Tells the client to drop its rows, and to begin anew with another handle. */
export function refetchResponse(handle: string): GatewayResponse {
  return jsonResponse(409, [MUST_REFETCH], { "electric-handle": handle, ...PRIVATE });
}

/** Returns a cursor that differs from the request's, so that a cache does not return the response again. */
function nextCursor(cursor: string): string {
  const now = Math.floor(Date.now() / 1000 / CURSOR_SECONDS) * CURSOR_SECONDS;
  const last = /^\d{1,15}$/.test(cursor) ? Number(cursor) : 0;
  return String(Math.max(now, last + 1));
}

/** Returns the header `electric-schema`: the names of types, by which clients parse values. */
function schemaHeader({ table, columns }: ShapeDefinition): string {
  const types = columns.map(({ name, baseType, nullable, maxLength }) => {
    const [type, dims] = baseType.kind === "array" ? [baseType.element, 1] : [baseType, undefined];
    const place = table.primaryKey.indexOf(name);
    const length = type.name === "varchar" && maxLength !== null ? { max_length: maxLength } : {};
    const key = place < 0 ? {} : { pk_index: place };
    return [name, { type: type.name, dims, ...(nullable ? {} : { not_null: true }), ...length, ...key }] as const;
  });
  // Headers are Latin-1.
  return JSON.stringify(Object.fromEntries(types)).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
