import type { GatewayResponse } from "../../http.ts";
import type { SelectItem } from "../../statement/intent.ts";
import type { Asked } from "../asked.ts";
import type { Collection } from "../collections.ts";
import { isMet, parsePreconditions } from "../parse/preconditions.ts";
import { preconditionFailed } from "../refusals.ts";
import { digestOf, entityTag, matches } from "./entity-tag.ts";
import { withDeprecation } from "./headers.ts";
import { isModified, isUnmodified, lastModified } from "./last-modified.ts";

type Shown = {
  readonly status: 200 | 201;
  /** The row as Postgres wrote it. */
  readonly text: string;
  readonly collection: Collection;
  /** What is shown of it. */
  readonly select: readonly SelectItem[];
  /** The same with links; null where none are asked for. */
  readonly linked: string | null;
  readonly headers?: Readonly<Record<string, string>>;
};

export function sendRow(asked: Asked, { status, text, collection, select, linked, headers }: Shown): GatewayResponse {
  const body = withDeprecation(linked ?? text, asked);
  // What belongs to other rows changes without this one.
  const modified = select.every(isOwn) ? lastModified(text, collection, Date.now()) : null;
  const tag = entityTag(text, body);
  const validators: Record<string, string> = { ETag: tag };
  if (modified) validators["Last-Modified"] = modified.toUTCString();
  if (isRead(asked) && isUnchanged(asked, text, tag, modified)) {
    return { status: 304, headers: validators, body: null };
  }
  return { status, headers: { "Content-Type": asked.agreed.contentType, ...validators, ...headers }, body };
}

function isUnchanged({ request: { headers } }: Asked, text: string, tag: string, modified: Date | null): boolean {
  const [ifMatch] = headers["if-match"] === undefined ? [] : parsePreconditions(headers);
  if (ifMatch ? !isMet(ifMatch, digestOf(text)) : isModified(headers["if-unmodified-since"], modified)) {
    throw preconditionFailed();
  }
  const known = headers["if-none-match"];
  // Where there is a tag, the date says nothing more (RFC 9110, 13.2.2).
  return known === undefined ? isUnmodified(headers["if-modified-since"], modified) : matches(known, tag);
}

function isOwn({ kind }: SelectItem): boolean {
  return kind === "column";
}

function isRead({ request: { method } }: Asked): boolean {
  return method === "GET" || method === "HEAD";
}
