import type { GatewayResponse } from "../../http.ts";
import { publicBase } from "../../public-address.ts";
import type { Asked } from "../asked.ts";
import type { Paging } from "../parse/paging.ts";
import { entityTag, matches } from "./entity-tag.ts";
import { withDeprecation } from "./headers.ts";

type Shown = {
  /** A JSON array of the rows. */
  readonly data: string;
  readonly total: number | null;
  readonly paging: Paging;
};

export function sendList(asked: Asked, { data, total, paging }: Shown): GatewayResponse {
  const { agreed, request } = asked;
  const body = toBody(data, paging, total ?? 0, asked);
  const headers = { ETag: entityTag(body, body) };
  if (matches(request.headers["if-none-match"], headers.ETag)) return { status: 304, headers, body: null };
  return { status: 200, headers: { "Content-Type": agreed.contentType, ...headers }, body };
}

/** Put together as text: the rows are as Postgres wrote them. */
function toBody(data: string, paging: Paging, total: number, asked: Asked): string {
  switch (paging.kind) {
    case "plain":
      return data;
    case "window": {
      const { skip, limit } = paging;
      return withDeprecation(`{"data":${data},"pagination":${JSON.stringify({ skip, limit, total })}}`, asked);
    }
    case "page": {
      const { page, limit } = paging;
      const totalPages = pagesOf(total, limit);
      const pagination = JSON.stringify({ page, limit, total, totalPages });
      const links = JSON.stringify(pageLinks(page, limit, totalPages, asked));
      return withDeprecation(`{"data":${data},"pagination":${pagination},"links":${links}}`, asked);
    }
    case "slice": {
      const { page, size } = paging;
      const totalPages = pagesOf(total, size);
      const rest = { page, size, totalElements: total, totalPages, first: page === 0, last: page >= totalPages - 1 };
      return withDeprecation(`{"content":${data},${JSON.stringify(rest).slice(1)}`, asked);
    }
  }
}

function pagesOf(total: number, size: number): number {
  return size === 0 ? 0 : Math.ceil(total / size);
}

function pageLinks(page: number, limit: number, totalPages: number, { address, parameters, settings }: Asked) {
  const base = publicBase(settings.publicUrl);
  const linkTo = (number: number) => {
    const query = new URLSearchParams(parameters);
    // Links are passed on and written down; a key is neither.
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
