import { isUtf8 } from "node:buffer";
import type { Stepwise } from "../../../engine/concurrency/stepwise.ts";
import { OPEN_BRACE, skipSpace } from "../../../engine/json/scan-json.ts";
import type { CallArgument, ResponseFormat, RowPayload } from "../../../engine/statement/intent.ts";
import { HttpError } from "../../../http/http-error.ts";
import { csvToJson } from "./csv.ts";
import { type JsonKeys, type JsonOutline, outlineJson } from "./json-outline.ts";
import { parseContentType } from "./media-type.ts";
import { parseForm, type UrlParameter } from "./query-string.ts";

const EMPTY_PAYLOAD: RowPayload = { json: Buffer.from("[]"), columns: [], isArray: true };
const RAW_BODY_TYPES: Readonly<Record<string, "text" | "xml" | "bytea">> = {
  "text/plain": "text",
  "text/xml": "xml",
  "application/octet-stream": "bytea",
};

/** A body, parsed as far as its media type allows, before the intent is known. */
export type ParsedBody = { readonly body: Buffer; readonly format: ResponseFormat } & (
  | { readonly kind: "json"; readonly outline: JsonOutline }
  | { readonly kind: "csv"; readonly json: Buffer; readonly columns: readonly string[] }
  | { readonly kind: "form"; readonly values: readonly UrlParameter[] }
  /** Nothing of it is read here. */
  | { readonly kind: "raw" }
  /** Reported only if the rest of the request is valid. */
  | { readonly kind: "unreadable"; readonly refusal: HttpError }
);

/** Of a request whose method has none. */
export const NO_BODY: ParsedBody = { body: Buffer.alloc(0), format: parseContentType(undefined), kind: "raw" };

/** A form has one row or the arguments of a function, so it is short. */
const MAX_FORM_BYTES = 2 ** 20;
const MAX_FORM_FIELDS = 10_000;

/** `holdMemory` is called with the memory used beside the body. */
export function* parseBody(
  body: Buffer,
  format: ResponseFormat,
  holdMemory?: (bytes: number) => void,
): Stepwise<ParsedBody> {
  const common = { body, format };
  try {
    switch (format.type) {
      case "application/json":
        return { ...common, kind: "json", outline: yield* outlineJson(body) };
      case "text/csv":
        return { ...common, kind: "csv", ...(yield* csvToJson(decodeText(body), holdMemory)) };
      case "application/x-www-form-urlencoded":
        return { ...common, kind: "form", values: parseFormBody(body) };
      default:
        return { ...common, kind: "raw" };
    }
  } catch (error) {
    if (!(error instanceof HttpError) || error.status !== 400) throw error;
    return { ...common, kind: "unreadable", refusal: error };
  }
}

function parseFormBody(body: Buffer): readonly UrlParameter[] {
  if (body.length > MAX_FORM_BYTES) {
    throw new HttpError(413, "PAYLOAD_TOO_LARGE", `A form may not be larger than ${MAX_FORM_BYTES} bytes.`, {
      hint: "Send JSON.",
    });
  }
  const text = decodeText(body);
  let fields = 1;
  for (let at = 0; at < text.length; at++) if (text[at] === "&" || text[at] === ";") fields++;
  if (fields > MAX_FORM_FIELDS)
    throw new HttpError(400, "PGRST102", `A form may not have more than ${MAX_FORM_FIELDS} fields`);
  return parseForm(text);
}

function decodeText(body: Buffer): string {
  if (!isUtf8(body)) throw new HttpError(400, "22021", 'invalid byte sequence for encoding "UTF8"');
  return body.toString();
}

/** The rows of an insert or an update. With the parameter `columns`, invalid JSON is left to Postgres to report. */
export function parseRows(body: ParsedBody, columns: readonly string[] | null): RowPayload {
  switch (body.kind) {
    case "json":
      return columns === null ? toPayload(body.body, requireReadable(body.outline)) : toNamedRows(body, columns);
    case "csv":
      return { json: body.json, columns: sortedUnique(body.columns), isArray: true };
    case "form": {
      const row = Object.fromEntries(body.values);
      return { json: Buffer.from(JSON.stringify(row)), columns: sortedUnique(Object.keys(row)), isArray: false };
    }
    case "unreadable":
      throw body.refusal;
    case "raw":
      throw contentTypeNotAcceptable(body.format);
  }
}

/** What a function is called with by POST. */
export function parseArgument(content: ParsedBody, columns: readonly string[] | null): CallArgument {
  const { body, format } = content;
  switch (content.kind) {
    case "json":
      if (columns !== null) return { kind: "json", body, names: sortedUnique(columns) };
      return body.length === 0
        ? { kind: "json", body: Buffer.from("{}"), names: [] }
        : { kind: "json", body, names: argumentNamesOf(requireReadable(content.outline)) };
    case "csv":
      return { kind: "json", body: content.json, names: sortedUnique(content.columns), isCsv: true };
    case "form":
      return { kind: "query", values: content.values };
    case "unreadable":
      throw content.refusal;
    case "raw": {
      const type = RAW_BODY_TYPES[format.type];
      if (type === undefined) throw contentTypeNotAcceptable(format);
      return { kind: "raw", body, type };
    }
  }
}

type ReadableOutline = Exclude<JsonOutline, { readonly kind: "invalid" | "too deep" }>;

function requireReadable(outline: JsonOutline): ReadableOutline {
  if (outline.kind === "invalid") throw invalidBody("Empty or invalid json");
  if (outline.kind === "too deep") throw invalidBody(`The json has more than ${outline.maxLevels} levels`);
  return outline;
}

function toPayload(body: Buffer, outline: ReadableOutline): RowPayload {
  switch (outline.kind) {
    case "object":
      return { json: body, columns: payloadColumns(outline.keys), isArray: false };
    case "rows": {
      const { keys, valueSpans } = outline;
      return { json: body, columns: payloadColumns(keys), isArray: true, ...(valueSpans && { valueSpans }) };
    }
    case "mixed":
      throw invalidBody("All object keys must match");
    case "scalar":
      return EMPTY_PAYLOAD;
  }
}

function payloadColumns(keys: JsonKeys): readonly string[] {
  if (keys === null) throw invalidBody("A row has more keys than a table can have columns");
  return sortedUnique(keys);
}

/** Anything that does not begin as an object is treated as rows; Postgres reports errors in it. */
function toNamedRows({ body, outline }: ParsedBody & { readonly kind: "json" }, names: readonly string[]): RowPayload {
  const columns = sortedUnique(names);
  if (body[skipSpace(body, 0)] === OPEN_BRACE) return { json: body, columns, isArray: false };
  const valueSpans = outline.kind === "rows" ? outline.valueSpans : null;
  const hasAll = valueSpans !== null && columns.every((name) => valueSpans.keys.includes(name));
  return { json: body, columns, isArray: true, ...(hasAll && { valueSpans }) };
}

/** Only a function of one unnamed parameter can take what has no names, or more of them than functions have parameters. */
function argumentNamesOf(outline: ReadableOutline): readonly string[] | null {
  const { keys } = outline.kind === "object" || outline.kind === "rows" ? outline : { keys: null };
  return keys && sortedUnique(keys);
}

/** Sorted, so that the order of the columns does not change the statement. */
function sortedUnique(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

function contentTypeNotAcceptable({ type }: ResponseFormat): HttpError {
  return invalidBody(`Content-Type not acceptable: ${type}`);
}

function invalidBody(message: string): HttpError {
  return new HttpError(400, "PGRST102", message);
}
