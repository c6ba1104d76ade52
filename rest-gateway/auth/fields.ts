import { ApiError, type FieldFault } from "../../engine/errors.ts";
import { isJsonObject } from "../../engine/json-object.ts";
import type { GatewayRequest } from "../http.ts";
import { SIGN_IN_BODY } from "./body-limit.ts";

/** One field of a body: what it must be, and what is said when it is something else. */
export type Field<T> = {
  readonly isRequired: boolean;
  readonly accepts: (value: unknown) => value is T;
  readonly wanted: string;
};

type Values<Shape> = { readonly [Name in keyof Shape]: Shape[Name] extends Field<infer T> ? T : never };

/** Postgres has no place for the character zero, and UTF-8 none for half a character. */
const isText = (value: unknown): value is string =>
  typeof value === "string" && !value.includes("\0") && value.isWellFormed();
const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value);
const isInteger = (value: unknown): value is number => isWholeNumber(value) && value === (value | 0);

export const TEXT: Field<string> = { isRequired: true, accepts: isText, wanted: "Send a text." };
export const OPTIONAL_TEXT: Field<string | null> = { ...TEXT, isRequired: false };
export const OPTIONAL_WHOLE_NUMBER: Field<number | null> = {
  isRequired: false,
  accepts: isWholeNumber,
  wanted: "Send a whole number.",
};
/** For a column of the type `integer`: Postgres would tell of a larger one in words of its own. */
export const OPTIONAL_INTEGER: Field<number | null> = {
  isRequired: false,
  accepts: isInteger,
  wanted: "Send a whole number of at most 2147483647.",
};

/** The fields of a JSON body; all that is wrong with them is told at once. An optional one that is absent is null. */
export async function readFields<Shape extends Readonly<Record<string, Field<unknown>>>>(
  request: GatewayRequest,
  shape: Shape,
): Promise<Values<Shape>> {
  const body = await readObject(request);
  const fields = Object.entries(shape).map(([name, field]) => {
    const value = Object.hasOwn(body, name) ? body[name] : null;
    return { name, field, value: value === "" ? null : (value ?? null) };
  });
  const missing = fields.filter(({ field, value }) => field.isRequired && value === null).map(({ name }) => name);
  const wrong = fields.filter(({ field, value }) => value !== null && !field.accepts(value));
  const faults = [
    ...missing.map((name) => ({ field: name, message: "This field is required." })),
    ...wrong.map(({ name, field }) => ({ field: name, message: field.wanted })),
  ];
  if (faults.length > 0) throw refusal(wrong.length === 0, faults);
  return Object.fromEntries(fields.map(({ name, value }) => [name, value])) as Values<Shape>;
}

function refusal(isMissingOnly: boolean, details: readonly FieldFault[]): ApiError {
  const names = details.map(({ field }) => field).join(", ");
  return isMissingOnly
    ? new ApiError(400, "MISSING_FIELD", `Required, but not there: ${names}.`, { details })
    : new ApiError(400, "VALIDATION_ERROR", `Not acceptable: ${names}.`, { details });
}

async function readObject(request: GatewayRequest): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await request.readBody(SIGN_IN_BODY);
  if (bytes.length === 0) return {};
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json") {
    throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "The body is to be JSON.", {
      hint: "Send it with Content-Type: application/json.",
      headers: { Accept: "application/json" },
    });
  }
  const body = parse(bytes);
  if (isJsonObject(body)) return body;
  throw new ApiError(400, "VALIDATION_ERROR", "The body is to be a JSON object.");
}

/** What the parser says of its fault is left out: it quotes the body, which may hold a password. */
function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new ApiError(400, "INVALID_JSON", "The body is not valid JSON.");
  }
}
