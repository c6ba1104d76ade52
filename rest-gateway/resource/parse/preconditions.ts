import type { IncomingHttpHeaders } from "node:http";
import type { Condition } from "../../statement/intent.ts";

/** What a client knows of the row, and whether it is to be so or not to be so. */
export type Precondition = {
  readonly negated: boolean;
  /** `*`: whatever there is. */
  readonly any: boolean;
  readonly digests: readonly string[];
};

/** Our own ETag is a digest of the row, and one of what is shown besides where there is more. */
const TAG = /(?<weak>W\/)?"(?<digest>[^".]*)[^"]*"/g;

/** What has to hold before something is written. */
export function parsePreconditions(headers: IncomingHttpHeaders): readonly Precondition[] {
  return [
    ...(headers["if-match"] === undefined ? [] : [parseTags(headers["if-match"], false)]),
    ...(headers["if-none-match"] === undefined ? [] : [parseTags(headers["if-none-match"], true)]),
  ];
}

/** A row that is there meets `If-Match: *` by that. */
export function conditionOf({ negated, any, digests }: Precondition): Condition {
  if (any) return { kind: "row", negated: !negated, operation: { kind: "digest", values: [] } };
  return { kind: "row", negated, operation: { kind: "digest", values: digests } };
}

export function isMet({ negated, any, digests }: Precondition, digest: string): boolean {
  return (any || digests.includes(digest)) !== negated;
}

function parseTags(header: string, negated: boolean): Precondition {
  if (header.trim() === "*") return { negated, any: true, digests: [] };
  // A weak tag is never enough to write by.
  const strong = [...header.matchAll(TAG)].filter(({ groups }) => negated || groups!.weak === undefined);
  return { negated, any: false, digests: strong.map(({ groups }) => groups!.digest!) };
}
