import { ApiError } from "../../../engine/errors.ts";
import { OPEN_BRACE, skipSpace } from "../../../engine/json/tokens.ts";
import type { CallArgument, Format, Payload } from "../../statement/intent.ts";
import type { Content } from "./content.ts";
import type { JsonOutline, Keys } from "./json-outline.ts";

const NO_ROWS: Payload = { json: Buffer.from("[]"), columns: [], isArray: true };
const RAW_TYPES: Readonly<Record<string, "text" | "xml" | "bytea">> = {
  "text/plain": "text",
  "text/xml": "xml",
  "application/octet-stream": "bytea",
};

/** The rows of an insert or an update. When the client names the columns, it is for Postgres to refuse the JSON. */
export function parseRows(content: Content, columns: readonly string[] | null): Payload {
  switch (content.kind) {
    case "json":
      return columns === null ? toRows(content.body, readable(content.outline)) : namedRows(content, columns);
    case "csv":
      return { json: content.json, columns: sorted(content.columns), isArray: true };
    case "form": {
      const row = Object.fromEntries(content.values);
      return { json: Buffer.from(JSON.stringify(row)), columns: sorted(Object.keys(row)), isArray: false };
    }
    case "unreadable":
      throw content.refusal;
    case "raw":
      throw unacceptable(content.format);
  }
}

/** What a function is called with by POST. */
export function parseArgument(content: Content, columns: readonly string[] | null): CallArgument {
  const { body, format } = content;
  switch (content.kind) {
    case "json":
      if (columns !== null) return { kind: "json", body, names: sorted(columns) };
      return body.length === 0
        ? { kind: "json", body: Buffer.from("{}"), names: [] }
        : { kind: "json", body, names: namesOf(readable(content.outline)) };
    case "csv":
      return { kind: "json", body: content.json, names: sorted(content.columns), isCsv: true };
    case "form":
      return { kind: "query", values: content.values };
    case "unreadable":
      throw content.refusal;
    case "raw": {
      const type = RAW_TYPES[format.type];
      if (type === undefined) throw unacceptable(format);
      return { kind: "raw", body, type };
    }
  }
}

type ReadableOutline = Exclude<JsonOutline, { readonly kind: "invalid" | "too deep" }>;

function readable(outline: JsonOutline): ReadableOutline {
  if (outline.kind === "invalid") throw unreadable("Empty or invalid json");
  if (outline.kind === "too deep") throw unreadable(`The json has more than ${outline.mostLevels} levels`);
  return outline;
}

function toRows(body: Buffer, outline: ReadableOutline): Payload {
  switch (outline.kind) {
    case "object":
      return { json: body, columns: columnsOf(outline.keys), isArray: false };
    case "rows": {
      const { keys, grid } = outline;
      return { json: body, columns: columnsOf(keys), isArray: true, ...(grid && { grid }) };
    }
    case "mixed":
      throw unreadable("All object keys must match");
    case "scalar":
      return NO_ROWS;
  }
}

function columnsOf(keys: Keys): readonly string[] {
  if (keys === null) throw unreadable("A row has more keys than a table can have columns");
  return sorted(keys);
}

/** What is no object at first sight is taken for rows, and Postgres says what is wrong with it. */
function namedRows({ body, outline }: Content & { readonly kind: "json" }, names: readonly string[]): Payload {
  const columns = sorted(names);
  if (body[skipSpace(body, 0)] === OPEN_BRACE) return { json: body, columns, isArray: false };
  const grid = outline.kind === "rows" ? outline.grid : null;
  const hasAll = grid !== null && columns.every((name) => grid.keys.includes(name));
  return { json: body, columns, isArray: true, ...(hasAll && { grid }) };
}

/** Only a function of one unnamed parameter can take what has no names, or more of them than functions have parameters. */
function namesOf(outline: ReadableOutline): readonly string[] | null {
  const { keys } = outline.kind === "object" || outline.kind === "rows" ? outline : { keys: null };
  return keys && sorted(keys);
}

/** The same columns give the same statement, in whatever order a client writes them. */
function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

function unacceptable({ type }: Format): ApiError {
  return unreadable(`Content-Type not acceptable: ${type}`);
}

function unreadable(message: string): ApiError {
  return new ApiError(400, "PGRST102", message);
}
