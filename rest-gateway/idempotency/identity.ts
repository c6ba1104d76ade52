import type { Caller } from "../../engine/caller/caller.ts";

/** What says when a token was made, and not whom it was made for. */
const OF_THE_TOKEN = new Set(["iat", "exp", "nbf", "jti"]);

/**
 * Who sends a key: the same for every token of a user, so that a retry may come with a fresh one. A token without a
 * subject stands for whoever has the same claims; those who share it tell each other's answers apart by the key alone.
 */
export function identityOf({ role, claims }: Caller): string {
  const { sub } = claims;
  if (typeof sub === "string" && sub !== "") return JSON.stringify([role, sub]);
  const lasting = Object.entries(claims).filter(([name]) => !OF_THE_TOKEN.has(name));
  return JSON.stringify([role, Object.fromEntries(lasting.sort(([a], [b]) => (a < b ? -1 : 1)))]);
}
