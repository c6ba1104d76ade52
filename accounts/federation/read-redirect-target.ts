import { ApiError } from "#runtime";

/** A requested redirect, and the name of its request field. */
export type RequestedRedirect = { readonly text: string | null; readonly field: string };

/** Validates a requested redirect; null if there is none. */
export type ReadRedirectTarget = (requested: RequestedRedirect) => string | null;

const HINT = "Use a URL of this service, or one that SIGN_IN_REDIRECTS allows.";
/** The length is limited because the redirect is stored until the provider's callback. */
const MAX_LENGTH = 4_096;

/** Prevents open redirects, which could also leak codes: allows URLs of this service and those that the patterns match. */
export function readRedirectTarget(
  { text, field }: RequestedRedirect,
  siteUrl: string,
  allowed: readonly string[],
): string | null {
  if (text === null) return null;
  // Browsers treat backslashes as slashes and ignore line breaks and tabs.
  const target = /[\\\p{Cc}]/u.test(text) ? null : URL.parse(text, siteUrl);
  if (!target || target.username || target.password || !isAllowed(target, siteUrl, allowed)) {
    throw new ApiError("invalid", "VALIDATION_ERROR", "Redirects to this URL are not allowed.", {
      hint: HINT,
      details: [{ field, message: HINT }],
    });
  }
  if (target.href.length > MAX_LENGTH) throw tooLong(field);
  return target.href;
}

function isAllowed(target: URL, siteUrl: string, patterns: readonly string[]): boolean {
  const own = new URL(siteUrl);
  // The check does not use `origin`, because the origin of a `blob:` URL is that of the inner URL.
  const isOwnOrigin = target.protocol === own.protocol && target.host === own.host;
  return isOwnOrigin || patterns.some((pattern) => matchesPattern(target, new URL(pattern)));
}

function tooLong(field: string): ApiError {
  const message = `The URL may have at most ${MAX_LENGTH} characters.`;
  return new ApiError("invalid", "VALIDATION_ERROR", message, { details: [{ field, message }] });
}

/** Ignores the query. A pattern that ends in `/*` matches all paths below it. */
function matchesPattern(target: URL, pattern: URL): boolean {
  if (target.protocol !== pattern.protocol || target.host !== pattern.host) return false;
  return pattern.pathname.endsWith("/*")
    ? target.pathname.startsWith(pattern.pathname.slice(0, -1))
    : target.pathname === pattern.pathname;
}
