import type { Caller } from "../../../engine/caller/caller.ts";
import type { Asked } from "../asked.ts";

/** All by which answers to one address may differ. */
const VARY = "Accept, Accept-Profile, Accept-Version, Authorization, Cookie, Origin, X-API-Key, X-API-Version";

/**
 * Of every answer, refusals and redirections included: caches keep those unasked as well. Nobody is known before the
 * credential was found good.
 */
export function cacheHeaders(caller: Caller | null): Record<string, string> {
  return { "Cache-Control": caller?.kind === "anonymous" ? "no-cache" : "private, no-cache", Vary: VARY };
}

export function withDeprecation(object: string, { notice }: Pick<Asked, "notice">): string {
  if (!notice) return object;
  const comma = object === "{}" ? "" : ",";
  return `${object.slice(0, -1)}${comma}"deprecation":${JSON.stringify(notice.body)}}`;
}
