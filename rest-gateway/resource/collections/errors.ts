import { HttpError } from "#http";
import { type FieldError, findClosestName } from "#runtime";
import type { Collection } from "./collections.ts";

/** Version 1 has a code for each error of the user resource; later versions have the general codes. */
type VersionErrorCodes = {
  readonly missingField: string;
  readonly invalidId: string;
  readonly invalidJson: string;
};

const VERSION_1_CODES: VersionErrorCodes = {
  missingField: "MISSING_FIELD",
  invalidId: "INVALID_ID",
  invalidJson: "INVALID_JSON",
};
const LATER_CODES: VersionErrorCodes = {
  missingField: "VALIDATION_ERROR",
  invalidId: "VALIDATION_ERROR",
  invalidJson: "VALIDATION_ERROR",
};

export function errorCodesOf(version: number): VersionErrorCodes {
  return version === 1 ? VERSION_1_CODES : LATER_CODES;
}

export function validationError(faults: readonly FieldError[], code = "VALIDATION_ERROR"): HttpError {
  const message = faults.map(({ field, message }) => `${field}: ${message}`).join(" ");
  return new HttpError(400, code, message, { details: faults });
}

export function invalidIdError(version: number, why: string, cause?: unknown): HttpError {
  return new HttpError(400, errorCodesOf(version).invalidId, `The id is not valid: ${why}`, { cause });
}

export function rowNotFound({ plain, name }: Collection): HttpError {
  if (!plain) return new HttpError(404, "RESOURCE_NOT_FOUND", `Not found: no such row in ${name}.`);
  const [first = "", ...others] = plain.notFound.toLowerCase().replaceAll("_", " ");
  return new HttpError(404, plain.notFound, `${first.toUpperCase()}${others.join("")}.`);
}

/** The error for several rows with one key: a table includes the rows of tables that inherit from it, but its key is unique in itself only. */
export function ambiguousRow(): HttpError {
  const hint = "Address the row in the table that it belongs to.";
  return new HttpError(409, "RESOURCE_CONFLICT", "Several rows have this id; nothing was written.", { hint });
}

export function preconditionFailed(): HttpError {
  return new HttpError(412, "PRECONDITION_FAILED", "The row has changed since you read it; nothing was written.", {
    hint: "Read it again and send its ETag.",
  });
}

export function permissionDenied({ anonymous }: { readonly anonymous: boolean }): HttpError {
  return anonymous
    ? new HttpError(401, "AUTH_REQUIRED", "Sign in first.", { headers: { "WWW-Authenticate": "Bearer" } })
    : new HttpError(403, "PERMISSION_DENIED", "You may not do this.");
}

/** Returns ` Did you mean "status"?` if a known word is at a small edit distance. */
export function suggestName(word: string, known: Iterable<string>): string {
  const suggestion = findClosestName(word, [...known]);
  return suggestion === null ? "" : ` Did you mean ${JSON.stringify(suggestion)}?`;
}
