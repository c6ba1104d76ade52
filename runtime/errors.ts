/** The kind of an error, independent of the protocol: HTTP maps each kind to a status. */
export type ErrorKind =
  | "ambiguous"
  | "conflict"
  | "forbidden"
  | "gone"
  | "internal"
  | "invalid"
  | "notAcceptable"
  | "notAllowed"
  | "notFound"
  | "rateLimited"
  | "timeout"
  | "unauthenticated"
  | "unavailable"
  | "upstreamFailed";

/** A sentence, or data for programs. */
export type ApiErrorDetails = string | readonly object[] | Readonly<Record<string, unknown>>;

/** The request to a rejected caller: to send credentials, or another token, because this one is invalid (RFC 6750 §3). */
type AuthenticationChallenge =
  | { readonly error: null }
  | { readonly error: "invalid_token"; readonly description: string };

export const CREDENTIALS_REQUIRED: AuthenticationChallenge = { error: null };

export type ApiErrorOptions = {
  readonly details?: ApiErrorDetails | null;
  readonly hint?: string | null;
  readonly challenge?: AuthenticationChallenge | null;
  readonly retryAfterSeconds?: number | null;
  readonly cause?: unknown;
};

/** The only error whose code and message a client may see: it has Postgres's four fields, and its kind. */
export class ApiError extends Error {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly details: ApiErrorDetails | null;
  readonly hint: string | null;
  readonly challenge: AuthenticationChallenge | null;
  /** The time after which a retry may succeed; null if it is not known. */
  readonly retryAfterSeconds: number | null;

  constructor(kind: ErrorKind, code: string, message: string, options: ApiErrorOptions = {}) {
    const { details, hint, challenge, retryAfterSeconds, cause } = options;
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ApiError";
    this.kind = kind;
    this.code = code;
    this.details = details ?? null;
    this.hint = hint ?? null;
    this.challenge = challenge ?? null;
    this.retryAfterSeconds = retryAfterSeconds ?? null;
  }
}

/** An error for the user of a program: its message is complete, so it is printed without a stack. */
export class ExplainedError extends Error {}

/** True for errors whose message is for users; other errors are defects. */
export function isExplained(error: unknown): error is Error {
  return error instanceof ExplainedError || (error instanceof Error && error.constructor === Error);
}

export function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError("unavailable", "PGRST001", message, { retryAfterSeconds: 1, cause });
}

export type FieldError = { readonly field: string; readonly message: string };

/** Returns the errors of single fields. Our own SQL names the one field in the detail (see db/README.md). */
export function fieldErrorsOf({ code, details, message }: ApiError): readonly FieldError[] {
  if (Array.isArray(details)) return details.filter(isFieldError);
  const isNamed = (code === "WRONG" || code === "TAKEN") && typeof details === "string" && details !== "";
  return isNamed ? [{ field: details, message }] : [];
}

function isFieldError(detail: object): detail is FieldError {
  return "field" in detail && "message" in detail;
}
