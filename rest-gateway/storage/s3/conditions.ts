import { matchesTag } from "#http";
import { s3Error } from "./s3-error.ts";
import { headerOf, type S3Request } from "./s3-request.ts";

/** The condition under which a write may replace an object. */
type WriteCondition = {
  /** True if the object must not exist. */
  readonly isNew: boolean;
  /** The content that the object must have; null for any. */
  readonly tag: string | null;
};

export function readWriteCondition(request: S3Request): WriteCondition {
  const ifNoneMatch = headerOf(request, request.query, "if-none-match");
  const ifMatch = headerOf(request, request.query, "if-match");
  if (ifNoneMatch !== null && ifNoneMatch !== "*")
    throw s3Error("NotImplemented", "For writes, If-None-Match must be *.");
  return { isNew: ifNoneMatch === "*", tag: ifMatch === null ? null : ifMatch.replace(/^"|"$/g, "") };
}

const TIME_CONDITIONS = ["x-amz-copy-source-if-modified-since", "x-amz-copy-source-if-unmodified-since"];

export function checkSourceCondition({ headers }: S3Request, tag: string): void {
  const { "x-amz-copy-source-if-match": match, "x-amz-copy-source-if-none-match": noneMatch } = headers;
  if (TIME_CONDITIONS.some((name) => headers[name] !== undefined))
    throw s3Error("NotImplemented", "Copies have conditions of ETags, and none of times.");
  const isMatched = typeof match !== "string" || matchesTag(match, tag);
  const isOther = typeof noneMatch !== "string" || !matchesTag(noneMatch, tag);
  if (!isMatched || !isOther) throw s3Error("PreconditionFailed");
}
