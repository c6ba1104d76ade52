import { isUtf8 } from "node:buffer";
import { ApiError } from "../../../engine/errors.ts";
import type { Stepwise } from "../../../engine/stepwise.ts";
import type { Format } from "../../statement/intent.ts";
import { csvToJson } from "./csv.ts";
import { type JsonOutline, outlineJson } from "./json-outline.ts";
import { parseContentType } from "./media-type.ts";
import { type Parameter, parseForm } from "./query-string.ts";

/** A body, read as far as that can be done before it is known what is asked for. */
export type Content = { readonly body: Buffer; readonly format: Format } & (
  | { readonly kind: "json"; readonly outline: JsonOutline }
  | { readonly kind: "csv"; readonly json: Buffer; readonly columns: readonly string[] }
  | { readonly kind: "form"; readonly values: readonly Parameter[] }
  /** Nothing of it is read here. */
  | { readonly kind: "raw" }
  /** What is wrong with it is told when nothing is wrong with the rest of the request. */
  | { readonly kind: "unreadable"; readonly refusal: ApiError }
);

/** Of a request whose method has none. */
export const NO_CONTENT: Content = { body: Buffer.alloc(0), format: parseContentType(undefined), kind: "raw" };

/** One row comes as a form, or the arguments of a function: what is longer, or has more fields, is none that anybody filled in. */
const MOST_FORM_BYTES = 2 ** 20;
const MOST_FORM_FIELDS = 10_000;

/** `holdMemory` is told what it takes beside the body. */
export function* readContent(body: Buffer, format: Format, holdMemory?: (bytes: number) => void): Stepwise<Content> {
  const common = { body, format };
  try {
    switch (format.type) {
      case "application/json":
        return { ...common, kind: "json", outline: yield* outlineJson(body) };
      case "text/csv":
        return { ...common, kind: "csv", ...(yield* csvToJson(textOf(body), holdMemory)) };
      case "application/x-www-form-urlencoded":
        return { ...common, kind: "form", values: readForm(body) };
      default:
        return { ...common, kind: "raw" };
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    return { ...common, kind: "unreadable", refusal: error };
  }
}

function readForm(body: Buffer): readonly Parameter[] {
  if (body.length > MOST_FORM_BYTES) {
    throw new ApiError(413, "PAYLOAD_TOO_LARGE", `A form may not be larger than ${MOST_FORM_BYTES} bytes.`, {
      hint: "Send JSON.",
    });
  }
  const text = textOf(body);
  let fields = 1;
  for (let at = 0; at < text.length; at++) if (text[at] === "&" || text[at] === ";") fields++;
  if (fields > MOST_FORM_FIELDS)
    throw new ApiError(400, "PGRST102", `A form may not have more than ${MOST_FORM_FIELDS} fields`);
  return parseForm(text);
}

function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw new ApiError(400, "22021", 'invalid byte sequence for encoding "UTF8"');
  return body.toString();
}
