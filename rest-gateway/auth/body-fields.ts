import { ApiError, type FieldFault } from "../../engine/errors.ts";
import { isJsonObject } from "../../engine/json-object.ts";
import type { GatewayRequest } from "../http.ts";
import { SIGN_IN_BODY } from "./body-limit.ts";

/** A field of a JSON body: its check, and the message for an invalid value. */
export type BodyField<T> = {
  readonly isRequired: boolean;
  readonly accepts: (value: unknown) => value is T;
  readonly message: string;
};

type FieldValues<Shape> = { readonly [Name in keyof Shape]: Shape[Name] extends BodyField<infer T> ? T : never };

/** Postgres cannot store NUL characters or lone surrogates. */
const isStorableText = (value: unknown): value is string =>
  typeof value === "string" && !value.includes("\0") && value.isWellFormed();
const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value);
const isInteger = (value: unknown): value is number => isWholeNumber(value) && value === (value | 0);

export const TEXT: BodyField<string> = { isRequired: true, accepts: isStorableText, message: "Send a text." };
export const OPTIONAL_TEXT: BodyField<string | null> = { ...TEXT, isRequired: false };
export const OPTIONAL_WHOLE_NUMBER: BodyField<number | null> = {
  isRequired: false,
  accepts: isWholeNumber,
  message: "Send a whole number.",
};
/** For a column of type `integer`: a larger value would raise a Postgres error. */
export const OPTIONAL_INTEGER: BodyField<number | null> = {
  isRequired: false,
  accepts: isInteger,
  message: "Send a whole number of at most 2147483647.",
};

/**
 * Reads the fields of a JSON body and reports all faults together. A missing optional field is null. Where a field is missing or
 * unreadable, `findFaults` says what is wrong with the others.
 */
export async function readFields<Shape extends Readonly<Record<string, BodyField<unknown>>>>(
  request: GatewayRequest,
  shape: Shape,
  findFaults: (readable: Partial<FieldValues<Shape>>) => Promise<readonly FieldFault[]> = async () => [],
): Promise<FieldValues<Shape>> {
  const body = await readObject(request);
  const fields = Object.entries(shape).map(([name, field]) => {
    const value = Object.hasOwn(body, name) ? body[name] : null;
    return { name, field, value: value === "" ? null : (value ?? null) };
  });
  const missing = fields.filter(({ field, value }) => field.isRequired && value === null).map(({ name }) => name);
  const wrong = fields.filter(({ field, value }) => value !== null && !field.accepts(value));
  const faults = [
    ...missing.map((name) => ({ field: name, message: "This field is required." })),
    ...wrong.map(({ name, field }) => ({ field: name, message: field.message })),
  ];
  if (faults.length > 0) {
    const readable = fields.filter((field) => field.value !== null && !wrong.includes(field));
    const others = await findFaults(valuesOf(readable) as Partial<FieldValues<Shape>>);
    throw fieldsError(wrong.length === 0, faults, others);
  }
  return valuesOf(fields) as FieldValues<Shape>;
}

function valuesOf(fields: readonly { readonly name: string; readonly value: unknown }[]): Record<string, unknown> {
  return Object.fromEntries(fields.map(({ name, value }) => [name, value]));
}

/** Some error formats contain only the message, so it lists all faults. */
function fieldsError(isMissingOnly: boolean, faults: readonly FieldFault[], others: readonly FieldFault[]): ApiError {
  const names = faults.map(({ field }) => field).join(", ");
  const rest = others.map(({ field, message }) => ` ${field}: ${message}`).join("");
  const details = [...faults, ...others];
  return isMissingOnly
    ? new ApiError(400, "MISSING_FIELD", `Missing required fields: ${names}.${rest}`, { details })
    : new ApiError(400, "VALIDATION_ERROR", `Invalid fields: ${names}.${rest}`, { details });
}

async function readObject(request: GatewayRequest): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await request.readBody(SIGN_IN_BODY);
  if (bytes.length === 0) return {};
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json") {
    throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "The body must be JSON.", {
      hint: "Send it with Content-Type: application/json.",
      headers: { Accept: "application/json" },
    });
  }
  const body = parse(bytes);
  if (isJsonObject(body)) return body;
  throw new ApiError(400, "VALIDATION_ERROR", "The body must be a JSON object.");
}

/** The parser's message is omitted, because it quotes the body, which may contain a password. */
function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new ApiError(400, "INVALID_JSON", "The body is not valid JSON.");
  }
}
