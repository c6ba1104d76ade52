import type { CredentialErrorReason } from "#accounts/identity";
import { errorCodeOf, errorHeaders, type GatewayRequest, type GatewayResponse, HttpError, jsonResponse } from "#http";
import { fieldErrorsOf } from "#runtime";

const API_VERSION_HEADER = "x-supabase-api-version";
/** The version since which `code` is the name of the error; before, it was the HTTP status. */
const NAMED_CODES_SINCE = "2024-01-01";
const API_VERSION = /^2\d{3}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;

/** GoTrue's names of errors that this interface throws by itself. */
export type AuthErrorCode =
  | "anonymous_provider_disabled"
  | "bad_code_verifier"
  | "bad_json"
  | "bad_jwt"
  | "bad_oauth_callback"
  | "bad_oauth_state"
  | "captcha_failed"
  | "conflict"
  | "email_address_invalid"
  | "email_address_not_authorized"
  | "email_conflict_identity_not_deletable"
  | "email_exists"
  | "email_not_confirmed"
  | "email_provider_disabled"
  | "flow_state_expired"
  | "flow_state_not_found"
  | "identity_already_exists"
  | "identity_not_found"
  | "insufficient_aal"
  | "invalid_credentials"
  | "invite_not_found"
  | "manual_linking_disabled"
  | "mfa_challenge_expired"
  | "mfa_factor_name_conflict"
  | "mfa_factor_not_found"
  | "mfa_ip_address_mismatch"
  | "mfa_phone_enroll_not_enabled"
  | "mfa_verification_failed"
  | "mfa_verification_rejected"
  | "mfa_verified_factor_exists"
  | "mfa_totp_enroll_not_enabled"
  | "no_authorization"
  | "not_admin"
  | "not_found"
  | "oauth_authorization_not_found"
  | "oauth_client_not_found"
  | "oauth_consent_not_found"
  | "oauth_provider_not_supported"
  | "otp_disabled"
  | "otp_expired"
  | "over_email_send_rate_limit"
  | "over_request_rate_limit"
  | "over_sms_send_rate_limit"
  | "passkey_not_found"
  | "phone_exists"
  | "phone_not_confirmed"
  | "phone_provider_disabled"
  | "provider_disabled"
  | "provider_email_needs_verification"
  | "reauthentication_needed"
  | "reauthentication_not_valid"
  | "refresh_token_already_used"
  | "refresh_token_not_found"
  | "request_timeout"
  | "same_password"
  | "saml_provider_disabled"
  | "session_expired"
  | "session_not_found"
  | "signup_disabled"
  | "single_identity_not_deletable"
  | "sms_send_failed"
  | "sso_provider_not_found"
  | "too_many_enrolled_mfa_factors"
  | "too_many_passkeys"
  | "unexpected_failure"
  | "user_already_exists"
  | "user_banned"
  | "user_not_found"
  | "user_sso_managed"
  | "validation_failed"
  | "weak_password"
  | "web3_provider_disabled"
  | "webauthn_challenge_expired"
  | "webauthn_challenge_not_found"
  | "webauthn_credential_exists"
  | "webauthn_verification_failed";

/** Headers of all responses, errors included. Browsers of other origins may read those that auth-js reads. */
export const COMMON_HEADERS = {
  "Cache-Control": "no-store",
  "Access-Control-Expose-Headers": "Link, Retry-After, X-Request-Id, X-Supabase-Api-Version, X-Total-Count",
};

type AuthErrorOptions = ConstructorParameters<typeof HttpError>[3];

/** An error in GoTrue's words. */
export function authError(
  status: number,
  code: AuthErrorCode,
  message: string,
  options: AuthErrorOptions = {},
): HttpError {
  return new HttpError(status, code, message, options);
}

export function validationFailed(message: string): HttpError {
  return authError(400, "validation_failed", message);
}

type ErrorTranslation = readonly [status: number, code: AuthErrorCode, message?: string];

const BAD_JWT: ErrorTranslation = [403, "bad_jwt"];
const REFRESH_TOKEN_USED: ErrorTranslation = [400, "refresh_token_already_used", "Invalid Refresh Token: Already Used"];

/** GoTrue's words for each reason why the token of a user is rejected. */
const CREDENTIAL_TRANSLATIONS: Readonly<Record<CredentialErrorReason, ErrorTranslation>> = {
  accountChanged: BAD_JWT,
  accountDeleted: [403, "user_not_found", "User from sub claim in JWT does not exist"],
  accountDisabled: [403, "user_banned", "User is banned"],
  apiKeyInvalid: BAD_JWT,
  claimsInvalid: BAD_JWT,
  credentialMissing: BAD_JWT,
  factorRequired: BAD_JWT,
  grantEnded: BAD_JWT,
  keyUnknown: BAD_JWT,
  refreshTokenExpired: REFRESH_TOKEN_USED,
  refreshTokenInvalid: [400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"],
  refreshTokenUsed: REFRESH_TOKEN_USED,
  schemeUnsupported: BAD_JWT,
  sessionEnded: [403, "session_not_found", "Session from session_id claim in JWT does not exist"],
  signatureInvalid: BAD_JWT,
  signerEnded: BAD_JWT,
  tokenEmpty: BAD_JWT,
  tokenExpired: BAD_JWT,
  tokenMalformed: BAD_JWT,
  tokenNotYetValid: BAD_JWT,
  tokenOfOtherType: BAD_JWT,
};

/** Makes the error. The message is that of `accounts`; GoTrue quotes it if it has no words of its own for the reason. */
export function credentialRejected(reason: CredentialErrorReason, message = ""): HttpError {
  const [status, code, text] = CREDENTIAL_TRANSLATIONS[reason];
  return authError(status, code, text ?? `invalid JWT: unable to parse or verify signature, ${message}`);
}

/** GoTrue's status, code and message for errors of `accounts`. */
const TRANSLATIONS: Readonly<Record<string, ErrorTranslation>> = {
  INVALID_CREDENTIALS: [400, "invalid_credentials", "Invalid login credentials"],
  ACCOUNT_DISABLED: [400, "user_banned", "User is banned"],
  MFA_REQUIRED: [403, "insufficient_aal"],
  EMAIL_NOT_CONFIRMED: [400, "email_not_confirmed", "Email not confirmed"],
  PASSKEY_CHALLENGE_EXPIRED: [400, "webauthn_challenge_expired", "Challenge has expired"],
  PASSKEY_CHALLENGE_NOT_FOUND: [400, "webauthn_challenge_not_found", "Challenge not found or already used"],
  PASSKEY_EXISTS: [422, "webauthn_credential_exists", "This credential is already registered"],
  PASSKEY_NOT_FOUND: [404, "passkey_not_found", "Passkey not found"],
  PASSKEY_REFUSED: [400, "webauthn_verification_failed", "Credential verification failed"],
  TOO_MANY_PASSKEYS: [422, "too_many_passkeys", "Maximum number of passkeys reached"],
  INVALID_CODE: [422, "mfa_verification_failed", "Invalid TOTP code entered"],
  AUTH_REQUIRED: [401, "no_authorization"],
  INVALID_TOKEN: [403, "bad_jwt"],
  TOKEN_EXPIRED: [403, "bad_jwt"],
  VERIFICATION_FAILED: [403, "bad_jwt"],
  PERMISSION_DENIED: [403, "not_admin"],
  INVALID_JSON: [400, "bad_json", "Could not parse request body as JSON"],
  RATE_LIMITED: [429, "over_request_rate_limit"],
  EMAIL_RATE_LIMITED: [429, "over_email_send_rate_limit"],
  SMS_RATE_LIMITED: [429, "over_sms_send_rate_limit"],
  RESOURCE_NOT_FOUND: [404, "not_found"],
  RESOURCE_CONFLICT: [422, "user_already_exists", "User already registered"],
  VALIDATION_ERROR: [400, "validation_failed"],
  MISSING_FIELD: [400, "validation_failed"],
  TIMEOUT: [504, "request_timeout"],
  SIGN_IN_ENDED: [400, "bad_oauth_state"],
  PROVIDER_REFUSED: [403, "bad_oauth_callback"],
  INVALID_ASSERTION: [400, "bad_oauth_callback"],
  SIGN_UP_CLOSED: [422, "signup_disabled"],
  EMAIL_REQUIRED: [422, "email_address_invalid"],
};

/** Returns the error response as GoTrue words it, by the interface version that the client requests. */
export function toAuthErrorResponse(error: HttpError, { headers }: Pick<GatewayRequest, "headers">): GatewayResponse {
  const { status, code, message, extra } = translateError(error);
  const version = readApiVersion(headers[API_VERSION_HEADER]);
  const ownHeaders = { ...COMMON_HEADERS, ...errorHeaders(error) };
  if (version === null || version < NAMED_CODES_SINCE) {
    return jsonResponse(status, { code: status, error_code: code, msg: message, ...extra }, ownHeaders);
  }
  const versionHeader = { "X-Supabase-Api-Version": NAMED_CODES_SINCE };
  return jsonResponse(status, { code, message, ...extra }, { ...ownHeaders, ...versionHeader });
}

type TranslatedError = {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly extra: object;
};

export function translateError(error: HttpError): TranslatedError {
  const { status, message, code, beside } = error;
  if (/^[a-z][a-z\d_]*$/.test(code)) return { status, code, message, extra: beside };
  const weak = readWeakPassword(error);
  if (weak) {
    const extra = { weak_password: { reasons: weak.reasons } };
    return { status: 422, code: "weak_password", message: weak.message, extra };
  }
  const translation = TRANSLATIONS[errorCodeOf(error)];
  if (!translation) return { status, code: "unexpected_failure", message, extra: {} };
  const [ownStatus, name, text = message] = translation;
  return { status: ownStatus, code: name, message: text, extra: {} };
}

type WeakPassword = { readonly message: string; readonly reasons: readonly ("length" | "characters" | "pwned")[] };

/** Reads a weak password; null unless the error concerns a new password only. */
function readWeakPassword(error: HttpError): WeakPassword | null {
  if (errorCodeOf(error) !== "VALIDATION_ERROR") return null;
  const faults = fieldErrorsOf(error);
  if (faults.length === 0 || !faults.every(({ field }) => field === "password")) return null;
  const words = faults.map(({ message }) => weaknessOf(message));
  return {
    message: words.map((word) => word.message).join(" "),
    reasons: [...new Set(words.map((word) => word.reason))],
  };
}

/** Returns GoTrue's words for an error of the password policy. */
function weaknessOf(fault: string): { readonly message: string; readonly reason: WeakPassword["reasons"][number] } {
  const [, bound] = /^Use (at (?:least|most) .*)$/.exec(fault) ?? [];
  if (bound !== undefined) return { message: `Password should be ${bound}`, reason: "length" };
  const [, missing] = /^Use (.*) as well\.$/.exec(fault) ?? [];
  if (missing !== undefined) return { message: `Password should contain ${missing}.`, reason: "characters" };
  return { message: `Password is known to be weak and easy to guess. ${fault}`, reason: "pwned" };
}

function readApiVersion(header: string | readonly string[] | undefined): string | null {
  return typeof header === "string" && API_VERSION.test(header) ? header : null;
}
