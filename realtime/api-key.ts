import type { IncomingHttpHeaders } from "node:http";

const HEADERS = ["apikey", "x-api-key"] as const;

/** What a socket or a request shows first of these. The address comes last: it is for browsers, which give a socket no headers. */
export function readApiKey(headers: IncomingHttpHeaders, query: URLSearchParams): string | null {
  const shown = [...HEADERS.map((name) => headers[name]), query.get("apikey")];
  return shown.find((key): key is string => typeof key === "string" && key !== "") ?? null;
}
