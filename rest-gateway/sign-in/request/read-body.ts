import { type BodyLimit, type GatewayRequest, HttpError } from "#http";
import type { FieldError } from "#runtime";
import { findUnstorable, isJsonObject, parseJsonExactly } from "#runtime/json";

/** The limit of bodies, which is enough for names, passwords, tokens and SAML assertions. The caller is not authenticated yet. */
const SIGN_IN_BODY: BodyLimit = { bytes: 64 * 1024, isAnonymous: true };

const FORM_TYPE = "application/x-www-form-urlencoded";

/** A field of a JSON body: its check, and the message for an invalid value. */
export type BodyField<T> = {
  readonly isRequired: boolean;
  readonly accepts: (value: unknown) => value is T;
  readonly message: string;
};

type FieldValues<Shape> = { readonly [Name in keyof Shape]: Shape[Name] extends BodyField<infer T> ? T : never };

const isStorableText = (value: unknown): value is string => typeof value === "string" && findUnstorable(value) === null;
const isWholeNumber = (value: unknown): value is number => Number.isSafeInteger(value);
const isInteger = (value: unknown): value is number => isWholeNumber(value) && value === (value | 0);

export const TEXT: BodyField<string> = { isRequired: true, accepts: isStorableText, message: "Send a text." };
export const OPTIONAL_TEXT: BodyField<string | null> = { ...TEXT, isRequired: false };
export const OPTIONAL_BOOLEAN: BodyField<boolean | null> = {
  isRequired: false,
  accepts: (value) => typeof value === "boolean",
  message: "Send true or false.",
};
/** A field for a column of type `integer`: a larger value would raise a Postgres error. */
export const INTEGER: BodyField<number> = {
  isRequired: true,
  accepts: isInteger,
  message: "Send a whole number of at most 2147483647.",
};
export const OPTIONAL_WHOLE_NUMBER: BodyField<number | null> = {
  isRequired: false,
  accepts: isWholeNumber,
  message: "Send a whole number.",
};
export const OPTIONAL_INTEGER: BodyField<number | null> = { ...INTEGER, isRequired: false };

/**
 * Reads the fields of a JSON body and reports all faults together. A missing optional field is null. If a field is missing or
 * unreadable, `findFaults` returns the faults of the others.
 */
export async function readFields<Shape extends Readonly<Record<string, BodyField<unknown>>>>(
  request: GatewayRequest,
  shape: Shape,
  findFaults: (readable: Partial<FieldValues<Shape>>) => Promise<readonly FieldError[]> = async () => [],
): Promise<FieldValues<Shape>> {
  const body = await readJsonObject(request);
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

/** Makes the error. Some error formats contain only the message, so it lists all faults. */
function fieldsError(isMissingOnly: boolean, faults: readonly FieldError[], others: readonly FieldError[]): HttpError {
  const names = faults.map(({ field }) => field).join(", ");
  const rest = others.map(({ field, message }) => ` ${field}: ${message}`).join("");
  const details = [...faults, ...others];
  return isMissingOnly
    ? new HttpError(400, "MISSING_FIELD", `Missing required fields: ${names}.${rest}`, { details })
    : new HttpError(400, "VALIDATION_ERROR", `Invalid fields: ${names}.${rest}`, { details });
}

export async function readJsonObject(
  request: GatewayRequest,
  limit = SIGN_IN_BODY,
): Promise<Readonly<Record<string, unknown>>> {
  const bytes = await request.readBody(limit);
  if (bytes.length === 0) return {};
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json") {
    throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "The body must be JSON.", {
      hint: "Send it with Content-Type: application/json.",
      headers: { Accept: "application/json" },
    });
  }
  const body = parseJsonBody(bytes);
  if (isJsonObject(body)) return body;
  throw new HttpError(400, "VALIDATION_ERROR", "The body must be a JSON object.");
}

/** Parses the body. The parser's message is omitted, because it quotes the body, which may contain a password. */
function parseJsonBody(bytes: Buffer): unknown {
  try {
    return parseJsonExactly(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new HttpError(400, "INVALID_JSON", "The body is not valid JSON.");
  }
}

export async function readForm(request: GatewayRequest): Promise<URLSearchParams> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== FORM_TYPE) {
    throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "This page accepts only its form.", {
      headers: { Accept: FORM_TYPE },
    });
  }
  return new URLSearchParams((await request.readBody(SIGN_IN_BODY)).toString("utf8"));
}

/** Refuses empty fields and NUL characters, which Postgres cannot store. */
export function requireFields<Name extends string>(
  values: URLSearchParams,
  names: readonly Name[],
): Readonly<Record<Name, string>> {
  const fields = names.map((name) => [name, values.get(name) ?? ""] as const);
  const missing = fields.filter(([, value]) => value === "" || value.includes("\0"));
  if (missing.length === 0) return Object.fromEntries(fields) as Record<Name, string>;
  throw new HttpError(400, "MISSING_FIELD", "Fill in all fields.", {
    details: missing.map(([field]) => ({ field, message: "Fill this in." })),
  });
}
