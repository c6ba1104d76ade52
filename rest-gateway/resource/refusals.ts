import { ApiError, type FieldFault } from "../../engine/errors.ts";
import type { Collection } from "./collections.ts";

/** Version 1 has a code for each fault, as the user resource is documented; later ones have the general codes. */
export type Codes = {
  readonly missingField: string;
  readonly invalidId: string;
  readonly invalidJson: string;
};

const PARTICULAR: Codes = { missingField: "MISSING_FIELD", invalidId: "INVALID_ID", invalidJson: "INVALID_JSON" };
const GENERAL: Codes = {
  missingField: "VALIDATION_ERROR",
  invalidId: "VALIDATION_ERROR",
  invalidJson: "VALIDATION_ERROR",
};

export function codesOf(version: number): Codes {
  return version === 1 ? PARTICULAR : GENERAL;
}

export function invalid(faults: readonly FieldFault[], code = "VALIDATION_ERROR"): ApiError {
  const message = faults.map(({ field, message }) => `${field}: ${message}`).join(" ");
  return new ApiError(400, code, message, { details: faults });
}

export function invalidId(version: number, why: string, cause?: unknown): ApiError {
  return new ApiError(400, codesOf(version).invalidId, `The id is not valid: ${why}`, { cause });
}

export function noRow({ plain, name }: Collection): ApiError {
  if (!plain) return new ApiError(404, "RESOURCE_NOT_FOUND", `Not found: no such row in ${name}.`);
  const [first = "", ...others] = plain.notFound.toLowerCase().replaceAll("_", " ");
  return new ApiError(404, plain.notFound, `${first.toUpperCase()}${others.join("")}.`);
}

/** A table shows the rows of tables that inherit from it, and its key tells apart its own alone. */
export function severalRows(): ApiError {
  const hint = "Address the row in the table that it belongs to.";
  return new ApiError(409, "RESOURCE_CONFLICT", "Several rows have this id; nothing was changed.", { hint });
}

export function preconditionFailed(): ApiError {
  return new ApiError(412, "PRECONDITION_FAILED", "It is no longer what you last saw; nothing was changed.", {
    hint: "Read it again, and send its ETag.",
  });
}

export function notPermitted({ anonymous }: { readonly anonymous: boolean }): ApiError {
  return anonymous
    ? new ApiError(401, "AUTH_REQUIRED", "Sign in first.", { headers: { "WWW-Authenticate": "Bearer" } })
    : new ApiError(403, "PERMISSION_DENIED", "You may not do this.");
}
