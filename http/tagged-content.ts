import { hash } from "node:crypto";

type ContentHeaders = Readonly<Record<string, string>>;

/** A body with its headers, of which one is an entity tag: clients may keep it and ask whether it has changed. */
export type TaggedContent = {
  readonly body: string | Buffer;
  readonly headers: ContentHeaders & { readonly ETag: string };
};

/** The response to a request for content that the client may have already. */
type ContentResponse = {
  readonly status: 200 | 304;
  readonly headers: ContentHeaders;
  readonly body: string | Buffer | null;
};

/** The tag belongs to the bytes of the body: a compressed form has a tag of its own (RFC 9110 §8.8.3). */
export function tagContent(body: string | Buffer, headers: ContentHeaders): TaggedContent {
  return { body, headers: { ...headers, ETag: `"${hash("sha256", body, "base64url")}"` } };
}

/** 304 if the client has the content. Headers that describe the body belong to 200 only (RFC 9110 §15.4.5). */
export function contentResponse({ body, headers }: TaggedContent, ifNoneMatch: string | undefined): ContentResponse {
  if (!matchesTag(ifNoneMatch, headers.ETag)) return { status: 200, headers, body };
  const { "Content-Type": _type, "Content-Encoding": _encoding, ...others } = headers;
  return { status: 304, headers: others, body: null };
}

/** `If-None-Match` of a read: weak tags match too. */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return (
    ifNoneMatch.trim() === "*" || [...ifNoneMatch.matchAll(/(?:W\/)?("[^"]*")/g)].some(([, known]) => known === tag)
  );
}
