import { isUtf8 } from "node:buffer";
import { ApiError } from "../../../engine/errors.ts";
import type { CallArgument, Format, Payload } from "../../statement/intent.ts";
import { csvToJson } from "./csv.ts";
import { type JsonOutline, outlineJson } from "./json-outline.ts";
import { OPEN_BRACE, skipSpace } from "./json-text.ts";
import { parseForm } from "./query-string.ts";

export type Content = { readonly body: Buffer; readonly format: Format };

const NO_ROWS: Payload = { json: Buffer.from("[]"), columns: [], isArray: true };
const RAW_TYPES = { "text/plain": "text", "text/xml": "xml", "application/octet-stream": "bytea" } as const;

/** The rows of an insert or an update. When the client names the columns, it is for Postgres to refuse the JSON. */
export function parseRows({ body, format }: Content, columns: readonly string[] | null): Payload {
  switch (format.type) {
    case "application/json":
      return columns === null ? toRows(body, readOutline(body)) : namedRows(body, columns);
    case "text/csv":
      return csvRows(body);
    case "application/x-www-form-urlencoded": {
      const row = Object.fromEntries(parseForm(textOf(body)));
      return { json: Buffer.from(JSON.stringify(row)), columns: sorted(Object.keys(row)), isArray: false };
    }
    default:
      throw unacceptable(format);
  }
}

/** What a function is called with by POST. */
export function parseArgument({ body, format }: Content, columns: readonly string[] | null): CallArgument {
  switch (format.type) {
    case "application/json":
      if (columns !== null) return { kind: "json", body, names: sorted(columns) };
      return body.length === 0
        ? { kind: "json", body: Buffer.from("{}"), names: [] }
        : { kind: "json", body, names: namesOf(readOutline(body)) };
    case "text/csv": {
      const { json, columns: names } = csvRows(body);
      return { kind: "json", body: json, names, isCsv: true };
    }
    case "application/x-www-form-urlencoded":
      return { kind: "query", values: parseForm(textOf(body)) };
    case "text/plain":
    case "text/xml":
    case "application/octet-stream":
      return { kind: "raw", body, type: RAW_TYPES[format.type] };
    default:
      throw unacceptable(format);
  }
}

function readOutline(body: Buffer): JsonOutline {
  const outline = outlineJson(body);
  if (outline === null) throw unreadable("Empty or invalid json");
  return outline;
}

function toRows(body: Buffer, outline: JsonOutline): Payload {
  switch (outline.kind) {
    case "object":
      return { json: body, columns: sorted(outline.keys), isArray: false };
    case "rows": {
      const { keys, grid } = outline;
      return { json: body, columns: sorted(keys), isArray: true, ...(grid && { grid }) };
    }
    case "mixed":
      throw unreadable("All object keys must match");
    case "scalar":
      return NO_ROWS;
  }
}

/** What is no object at first sight is taken for rows, and Postgres says what is wrong with it. */
function namedRows(body: Buffer, names: readonly string[]): Payload {
  const columns = sorted(names);
  if (body[skipSpace(body, 0)] === OPEN_BRACE) return { json: body, columns, isArray: false };
  const outline = outlineJson(body);
  const grid = outline?.kind === "rows" ? outline.grid : null;
  const hasAll = grid !== null && columns.every((name) => grid.keys.includes(name));
  return { json: body, columns, isArray: true, ...(hasAll && { grid }) };
}

function csvRows(body: Buffer): Payload {
  const { json, columns } = csvToJson(textOf(body));
  return { json, columns: sorted(columns), isArray: true };
}

/** Only a function of one unnamed parameter can take what has no names. */
function namesOf(outline: JsonOutline): readonly string[] | null {
  return outline.kind === "object" || outline.kind === "rows" ? sorted(outline.keys) : null;
}

/** The same columns give the same statement, in whatever order a client writes them. */
function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw new ApiError(400, "22021", 'invalid byte sequence for encoding "UTF8"');
  return body.toString();
}

function unacceptable({ type }: Format): ApiError {
  return unreadable(`Content-Type not acceptable: ${type}`);
}

function unreadable(message: string): ApiError {
  return new ApiError(400, "PGRST102", message);
}
