import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** The condition of `If-Match`, or the negated one of `If-None-Match`. */
export type Precondition = {
  readonly negated: boolean;
  /** True for `*`, which matches any version of the row. */
  readonly any: boolean;
  readonly digests: readonly string[];
};

/** Our ETag is a digest of the rows, and after a dot a text for other differences of the representation. */
const TAG = /(?<weak>W\/)?"(?<digest>[^".]*)(?:\.[^"]*)?"/g;

/** Parses the conditions of a write. */
export function parsePreconditions(headers: IncomingHttpHeaders): readonly Precondition[] {
  return [
    ...(headers["if-match"] === undefined ? [] : [parseTags(headers["if-match"], false)]),
    ...(headers["if-none-match"] === undefined ? [] : [parseTags(headers["if-none-match"], true)]),
  ];
}

export function isMet({ negated, any, digests }: Precondition, digest: string): boolean {
  return (any || digests.includes(digest)) !== negated;
}

function parseTags(header: string, negated: boolean): Precondition {
  if (header.trim() === "*") return { negated, any: true, digests: [] };
  // A weak tag never matches for a write.
  const strong = [...header.matchAll(TAG)].filter(({ groups }) => negated || groups!.weak === undefined);
  return { negated, any: false, digests: strong.map(({ groups }) => groups!.digest!) };
}

/** Postgres computes the same digest of a row, to compare it in a write. */
export function digestOf(text: string | Buffer): string {
  return hash("sha256", text, "hex");
}

/** Evaluates `If-None-Match` of a read: weak tags match too (RFC 9110 §13.1.2). */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const opaque = tag.replace(/^W\//, "");
  return ifNoneMatch.trim() === "*" || [...ifNoneMatch.matchAll(/"[^"]*"/g)].some(([known]) => known === opaque);
}
