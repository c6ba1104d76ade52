import { makeRedirectTargets } from "../../../engine/auth/federation/redirect-targets.ts";
import type { Config } from "../../../engine/config/config.ts";

/** Where to go after signing in. Here it is a path: whoever asked by another name of this server has the cookie for that name. */
export function makeReadTarget(
  siteUrl: () => string,
  { signInRedirects }: Pick<Config, "signInRedirects">,
): (text: string | null) => string | null {
  return (text) => {
    const target = makeRedirectTargets(siteUrl(), signInRedirects)({ text: text || null, field: "redirect_to" });
    if (target === null) return null;
    const { origin, pathname, search, hash } = new URL(target);
    // A path that begins with two slashes would name another host.
    const isPath = origin === new URL(siteUrl()).origin && !pathname.startsWith("//");
    return isPath ? pathname + search + hash : target;
  };
}
