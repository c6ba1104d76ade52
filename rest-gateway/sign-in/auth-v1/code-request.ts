import type { Accounts, CodeChallenge, CodeEmails, CodeRequest, PhoneAccounts } from "#accounts";
import { readRedirectTarget } from "#accounts/federation";
import { isLoopbackHost } from "#config";
import type { HttpError } from "#http";
import type { JsonObject } from "#runtime/json";
import { type AuthRequest, type AuthV1Services, readText } from "./auth-v1-request.ts";
import { authError, validationFailed } from "./errors.ts";

const CHALLENGE_PATTERN = /^[A-Za-z0-9._~-]+$/;
const [MIN_CHALLENGE_LENGTH, MAX_CHALLENGE_LENGTH] = [43, 128];

/** Reads the target of an e-mail's link, and the challenge of a client that exchanges a code for tokens (PKCE). */
export function readCodeRequest(services: RedirectServices, request: AuthRequest, body: JsonObject): CodeRequest {
  const [challenge, method] = [readText(body, "code_challenge"), readText(body, "code_challenge_method")];
  return { redirectTo: readRedirect(services, request), codeChallenge: readCodeChallenge(challenge, method) };
}

/** Reads the challenge; null if there is none. */
export function readCodeChallenge(challenge: string, methodName: string): CodeChallenge | null {
  if ((challenge === "") !== (methodName === "")) {
    throw validationFailed("PKCE flow requires code_challenge_method and code_challenge");
  }
  if (challenge === "") return null;
  const method = methodName.toLowerCase();
  if (method !== "s256" && method !== "plain") throw validationFailed("code challenge method must be s256 or plain");
  if (challenge.length < MIN_CHALLENGE_LENGTH || challenge.length > MAX_CHALLENGE_LENGTH) {
    throw validationFailed(
      `code challenge has to be between ${MIN_CHALLENGE_LENGTH} and ${MAX_CHALLENGE_LENGTH} characters`,
    );
  }
  if (!CHALLENGE_PATTERN.test(challenge)) {
    throw validationFailed(
      "code challenge can only contain alphanumeric characters, hyphens, periods, underscores and tildes",
    );
  }
  return { challenge, method };
}

type RedirectServices = Pick<AuthV1Services, "config" | "siteUrl">;

/** Reads `redirect_to`, or the page that sent the request; a URL that is not allowed is ignored, as at Supabase. */
export function readRedirect({ config, siteUrl }: RedirectServices, { query, headers }: AuthRequest): string {
  const applicationUrl = config.applicationUrl ?? siteUrl();
  const allow = (text: string | null, ownUrl: string) => findAllowed(text, ownUrl, config.signInRedirects);
  const requested = query.get("redirect_to");
  return (
    allow(requested, applicationUrl) ??
    allow(requested, siteUrl()) ??
    allow(headers.referer ?? null, applicationUrl) ??
    applicationUrl
  );
}

function findAllowed(text: string | null, ownUrl: string, allowed: readonly string[]): string | null {
  if (!text) return null;
  try {
    return readRedirectTarget({ text, field: "redirect_to" }, ownUrl, allowed);
  } catch {
    return isLocal(text) && isLocal(ownUrl) ? new URL(text).href : null;
  }
}

/** Returns true for this machine: during development, applications listen on several of its ports. */
function isLocal(text: string): boolean {
  const { protocol = "", hostname = "", username, password } = URL.parse(text) ?? {};
  return /^https?:$/.test(protocol) && isLoopbackHost(hostname) && !username && !password && !/[\\\p{Cc}]/u.test(text);
}

const EMAIL_PATTERN =
  /^(?=.{1,64}@)[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const MAX_EMAIL_LENGTH = 254;

/** Reads the e-mail address of a body, in lower case. */
export function readEmail(body: JsonObject, field = "email"): string {
  const email = readText(body, field).toLowerCase();
  if (email.length <= MAX_EMAIL_LENGTH && EMAIL_PATTERN.test(email)) return email;
  throw invalidEmail();
}

export function invalidEmail(): HttpError {
  return validationFailed("Unable to validate email address: invalid format");
}

/** Reads the digits of an international number; "" if it is missing. */
export function readPhone(body: JsonObject): string {
  const phone = readText(body, "phone").trim().replace(/^\+/, "").replaceAll(" ", "");
  if (phone === "" || /^[1-9]\d{1,14}$/.test(phone)) return phone;
  throw validationFailed("Invalid phone number format (E.164 required)");
}

/** Requires accounts with phone numbers. Text messages are the only channel. */
export function requirePhones({ phones }: Pick<Accounts, "phones">, channel: string): PhoneAccounts {
  if (!phones) throw authError(400, "phone_provider_disabled", "Unsupported phone provider");
  if (channel === "" || channel === "sms") return phones;
  throw validationFailed("Invalid channel, the only supported value is 'sms'");
}

export function requireCodeEmails({ codeEmails }: Pick<Accounts, "codeEmails">): CodeEmails {
  if (codeEmails) return codeEmails;
  throw authError(422, "email_provider_disabled", "This service sends no e-mails");
}
