import type { Caller } from "../../../engine/identity/caller.ts";
import type { SelectItem } from "../../../engine/statement/intent.ts";
import { matchesTag } from "../../../http/tagged-content.ts";
import { publicBaseUrl } from "../../http/paths.ts";
import type { GatewayResponse } from "../../http/response.ts";
import type { Collection } from "../collections.ts";
import {
  digestOf,
  entityTag,
  isMet,
  isModified,
  isUnmodified,
  lastModified,
  parsePreconditions,
} from "../conditional-requests.ts";
import { preconditionFailed } from "../errors.ts";
import type { Paging } from "../parse/parameters.ts";
import type { ResourceRequest } from "../request.ts";

/** All request headers that a response depends on. */
const VARY = "Accept, Accept-Profile, Accept-Version, Authorization, Cookie, Origin, X-API-Key, X-API-Version";

type RowContent = {
  readonly status: 200 | 201;
  /** The row as Postgres wrote it. */
  readonly text: string;
  readonly collection: Collection;
  /** The selected fields. */
  readonly select: readonly SelectItem[];
  /** The row with links; null if none are requested. */
  readonly linked: string | null;
  readonly headers?: Readonly<Record<string, string>>;
};

export function respondWithRow(
  parsed: ResourceRequest,
  { status, text, collection, select, linked, headers }: RowContent,
): GatewayResponse {
  const body = withDeprecation(linked ?? text, parsed);
  // Related rows change without this one.
  const modified = select.every(isOwnColumn) ? lastModified(text, collection, Date.now()) : null;
  const tag = entityTag(text, body);
  const validators: Record<string, string> = { ETag: tag };
  if (modified) validators["Last-Modified"] = modified.toUTCString();
  if (isReadRequest(parsed) && isUnchanged(parsed, text, tag, modified)) {
    return { status: 304, headers: validators, body: null };
  }
  return { status, headers: { "Content-Type": parsed.negotiated.contentType, ...validators, ...headers }, body };
}

function isUnchanged(
  { request: { headers } }: ResourceRequest,
  text: string,
  tag: string,
  modified: Date | null,
): boolean {
  const [ifMatch] = headers["if-match"] === undefined ? [] : parsePreconditions(headers);
  if (ifMatch ? !isMet(ifMatch, digestOf(text)) : isModified(headers["if-unmodified-since"], modified)) {
    throw preconditionFailed();
  }
  const etags = headers["if-none-match"];
  // An ETag takes precedence over the date (RFC 9110, 13.2.2).
  return etags === undefined ? isUnmodified(headers["if-modified-since"], modified) : matchesTag(etags, tag);
}

function isOwnColumn({ kind }: SelectItem): boolean {
  return kind === "column";
}

function isReadRequest({ request: { method } }: ResourceRequest): boolean {
  return method === "GET" || method === "HEAD";
}

type ListContent = {
  /** A JSON array of rows. */
  readonly data: string;
  readonly total: number | null;
  readonly paging: Paging;
};

export function respondWithList(parsed: ResourceRequest, { data, total, paging }: ListContent): GatewayResponse {
  const { negotiated: agreed, request } = parsed;
  const body = toBody(data, paging, total ?? 0, parsed);
  const headers = { ETag: entityTag(body, body) };
  if (matchesTag(request.headers["if-none-match"], headers.ETag)) return { status: 304, headers, body: null };
  return { status: 200, headers: { "Content-Type": agreed.contentType, ...headers }, body };
}

/** Concatenates text, because the rows are already JSON. */
function toBody(data: string, paging: Paging, total: number, parsed: ResourceRequest): string {
  switch (paging.kind) {
    case "plain":
      return data;
    case "window": {
      const { skip, limit } = paging;
      return withDeprecation(`{"data":${data},"pagination":${JSON.stringify({ skip, limit, total })}}`, parsed);
    }
    case "page": {
      const { page, limit } = paging;
      const totalPages = pageCount(total, limit);
      const pagination = JSON.stringify({ page, limit, total, totalPages });
      const links = JSON.stringify(pageLinks(page, limit, totalPages, parsed));
      return withDeprecation(`{"data":${data},"pagination":${pagination},"links":${links}}`, parsed);
    }
    case "slice": {
      const { page, size } = paging;
      const totalPages = pageCount(total, size);
      const rest = { page, size, totalElements: total, totalPages, first: page === 0, last: page >= totalPages - 1 };
      return withDeprecation(`{"content":${data},${JSON.stringify(rest).slice(1)}`, parsed);
    }
  }
}

function pageCount(total: number, size: number): number {
  return size === 0 ? 0 : Math.ceil(total / size);
}

function pageLinks(
  page: number,
  limit: number,
  totalPages: number,
  { address, parameters, settings }: ResourceRequest,
) {
  const base = publicBaseUrl(settings.publicUrl);
  const linkTo = (number: number) => {
    const query = new URLSearchParams(parameters);
    // Links are shared and logged; keys must not be.
    query.delete("api_key");
    query.set("page", String(number));
    query.set("limit", String(limit));
    return `${base}${address.canonical}?${query}`;
  };
  return {
    first: linkTo(1),
    prev: page > 1 ? linkTo(Math.max(1, Math.min(page - 1, totalPages))) : null,
    next: page < totalPages ? linkTo(page + 1) : null,
    last: linkTo(Math.max(1, totalPages)),
  };
}

/**
 * Headers of every response, errors and redirects included, which caches store by default. Null until the credential is
 * verified.
 */
export function cacheHeaders(caller: Caller | null): Record<string, string> {
  return { "Cache-Control": caller?.kind === "anonymous" ? "no-cache" : "private, no-cache", Vary: VARY };
}

function withDeprecation(object: string, { notice }: Pick<ResourceRequest, "notice">): string {
  if (!notice) return object;
  const comma = object === "{}" ? "" : ",";
  return `${object.slice(0, -1)}${comma}"deprecation":${JSON.stringify(notice.body)}}`;
}
