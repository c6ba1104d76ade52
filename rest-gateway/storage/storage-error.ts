import pg from "pg";
import { ContentTooLarge, StoreFull, TooManyUploads } from "#files";
import { errorHeaders, type GatewayResponse, HttpError, jsonResponse } from "#http";

/** The names of errors of Supabase's storage service, with their status and message. */
const KNOWN = {
  AccessDenied: [403, "Unauthorized", "new row violates row-level security policy"],
  BucketAlreadyExists: [409, "Duplicate", "The resource already exists"],
  EntityTooLarge: [413, "Payload too large", "The object exceeded the maximum allowed size"],
  ExpiredToken: [400, "ExpiredToken", "The provided token has expired."],
  FeatureNotEnabled: [400, "FeatureNotEnabled", "feature not enabled for this tenant"],
  InvalidBucketName: [400, "Invalid Input", "Bucket name invalid"],
  InvalidJWT: [400, "InvalidJWT", "Invalid JWT"],
  InvalidKey: [400, "InvalidKey", "Invalid key"],
  InvalidMimeType: [415, "invalid_mime_type", "mime type is not supported"],
  InvalidRange: [416, "invalid_range", "invalid range provided"],
  InvalidRequest: [400, "InvalidRequest", "Invalid request"],
  InvalidSignature: [400, "InvalidSignature", "Invalid signature"],
  KeyAlreadyExists: [409, "Duplicate", "The resource already exists"],
  MissingAuthorization: [400, "Error", "headers must have required property 'authorization'"],
  MissingParameter: [400, "MissingParameter", "Missing Required Parameter"],
  NoSuchBucket: [404, "Bucket not found", "Bucket not found"],
  NoSuchKey: [404, "not_found", "Object not found"],
  PreconditionFailed: [412, "PreconditionFailed", "At least one of the preconditions that you specified did not hold."],
  QuotaExceeded: [413, "Payload too large", "The bucket is full"],
  ResourceNotEmpty: [409, "ResourceNotEmpty", "The bucket you tried to delete is not empty"],
  StorageFull: [507, "StorageFull", "There is no room for more files"],
  TooManyUploads: [429, "TooManyUploads", "Too many uploads are unfinished"],
} as const satisfies Record<string, readonly [status: number, error: string, message: string]>;

type StorageErrorCode = keyof typeof KNOWN;

export function storageError(
  code: StorageErrorCode,
  message?: string,
  options: { cause?: unknown; hint?: string | undefined } = {},
) {
  const [status, , usual] = KNOWN[code];
  return new HttpError(status, code, message ?? usual, {
    cause: options.cause,
    ...(options.hint && { hint: options.hint }),
  });
}

/** Explains a refusal by a rule of the database. */
export function explainStorageError(thrown: unknown): unknown {
  if (!(thrown instanceof pg.DatabaseError)) return thrown;
  switch (thrown.code) {
    case "42501":
      return storageError("AccessDenied", undefined, { cause: thrown });
    case "23505":
      return storageError("KeyAlreadyExists", undefined, { cause: thrown });
    case "23503":
      return storageError(thrown.table === "objects" ? "ResourceNotEmpty" : "NoSuchBucket", undefined, {
        cause: thrown,
      });
    case "23514":
      if (thrown.constraint === "content_service_object_name_is_valid")
        return storageError("InvalidKey", undefined, { cause: thrown });
      if (thrown.constraint === "content_service_bucket_name_is_valid")
        return storageError("InvalidBucketName", undefined, { cause: thrown });
      return thrown;
    // The limits of buckets and of unfinished uploads raise this.
    case "PT413":
      return storageError("QuotaExceeded", thrown.message, { cause: thrown, hint: thrown.hint });
    case "PT429":
      return storageError("TooManyUploads", thrown.message, { cause: thrown, hint: thrown.hint });
    default:
      return thrown;
  }
}

/** Explains a refusal by the file store. */
export function explainStoreError(thrown: unknown): unknown {
  if (thrown instanceof ContentTooLarge) return storageError("EntityTooLarge", undefined, { cause: thrown });
  if (thrown instanceof TooManyUploads) {
    const hint = "Complete or delete some of them. They end a day after their last part.";
    return storageError("TooManyUploads", undefined, { cause: thrown, hint });
  }
  if (thrown instanceof StoreFull || FULL_DISK.has((thrown as NodeJS.ErrnoException)?.code ?? "")) {
    return storageError("StorageFull", undefined, { cause: thrown, hint: "Free space on the disk of STORAGE_DIR." });
  }
  return thrown;
}

const FULL_DISK: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** Statuses that clients of HTTP must see. Others are 400, with the status in the body, as Supabase's clients expect. */
const PLAIN_STATUSES: ReadonlySet<number> = new Set([304, 408, 413, 416, 429, 503, 504]);

export function toStorageErrorResponse(error: HttpError): GatewayResponse {
  const { status, code, message, hint } = error;
  const [, name] = code in KNOWN ? KNOWN[code as StorageErrorCode] : [0, code];
  const shown = status >= 500 || PLAIN_STATUSES.has(status) ? status : 400;
  const body = { statusCode: String(status), error: name, message, code, ...(hint && { hint }) };
  return jsonResponse(shown, body, { "Cache-Control": "no-store", ...errorHeaders(error) });
}
