import { LiveSubscriber } from "../../../live/queries/live-subscriber.ts";

/** A client of a query that never runs. */
export function openSubscriber(): LiveSubscriber {
  const source = { request: "", quotaKey: "", isPrivate: false, run: () => Promise.reject(new Error("not run")) };
  const caller = { kind: "known", role: "anon", claims: {}, claimsText: "{}", expiresAt: null } as const;
  return new LiveSubscriber({ ...source, caller }, () => {});
}
