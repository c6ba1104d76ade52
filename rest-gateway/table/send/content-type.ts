import type { Format } from "../../statement/intent.ts";

/** Bytes, or a type whose parameters are its maker's business, get no charset. */
const TEXTS = new Set([
  "application/json",
  "application/geo+json",
  "application/openapi+json",
  "text/csv",
  "text/plain",
  "text/xml",
]);

export function contentTypeOf({ kind, type }: Format): string {
  return kind !== "media" || TEXTS.has(type) ? `${type}; charset=utf-8` : type;
}
