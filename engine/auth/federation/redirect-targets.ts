import { ApiError } from "../../errors.ts";

/** Where a browser wants to be sent in the end, and the field of the request that says so. */
export type RequestedTarget = { readonly text: string | null; readonly field: string };

/** Reads that address; null for nowhere. */
export type RedirectTargets = (requested: RequestedTarget) => string | null;

const HINT = "Name an address of this service, or one of SIGN_IN_REDIRECTS.";
/** It is stored while the browser is away. */
const MAX_LENGTH = 4_096;

/** Else a link to us could send people, and the codes that they are given, anywhere. */
export function makeRedirectTargets(siteUrl: string, allowed: readonly string[]): RedirectTargets {
  const own = new URL(siteUrl);
  const patterns = allowed.map((entry) => new URL(entry));
  return ({ text, field }) => {
    if (text === null) return null;
    // A browser reads a backslash as a slash, and leaves out line ends and tabs.
    const target = /[\\\p{Cc}]/u.test(text) ? null : URL.parse(text, siteUrl);
    // Not by its origin: that of a `blob:` is the one of the address in it.
    const isOurs = target?.protocol === own.protocol && target.host === own.host;
    if (!target || target.username || target.password || !(isOurs || patterns.some((each) => fits(target, each)))) {
      throw new ApiError(400, "VALIDATION_ERROR", "A sign-in may not end at this address.", {
        hint: HINT,
        details: [{ field, message: HINT }],
      });
    }
    if (target.href.length > MAX_LENGTH) throw tooLong(field);
    return target.href;
  };
}

function tooLong(field: string): ApiError {
  const message = `The address may have at most ${MAX_LENGTH} characters.`;
  return new ApiError(400, "VALIDATION_ERROR", message, { details: [{ field, message }] });
}

/** The address itself whatever its query; with `/*` at its end, all below it. */
function fits(target: URL, pattern: URL): boolean {
  if (target.protocol !== pattern.protocol || target.host !== pattern.host) return false;
  return pattern.pathname.endsWith("/*")
    ? target.pathname.startsWith(pattern.pathname.slice(0, -1))
    : target.pathname === pattern.pathname;
}
