import { makeReadRedirectTarget } from "../../../engine/auth/federation/read-redirect-target.ts";
import type { Config } from "../../../engine/config/config.ts";

/** Validates the redirect after a sign-in. Own URLs become paths, because the cookie belongs to the host name that the browser uses. */
export function makeReadPageRedirect(
  siteUrl: () => string,
  { signInRedirects }: Pick<Config, "signInRedirects">,
): (text: string | null) => string | null {
  return (text) => {
    const target = makeReadRedirectTarget(siteUrl(), signInRedirects)({ text: text || null, field: "redirect_to" });
    if (target === null) return null;
    const { origin, pathname, search, hash } = new URL(target);
    // A path that begins with two slashes would be another host.
    const isPath = origin === new URL(siteUrl()).origin && !pathname.startsWith("//");
    return isPath ? pathname + search + hash : target;
  };
}
