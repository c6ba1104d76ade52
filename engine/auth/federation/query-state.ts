import type { CallbackRequest } from "./provider.ts";

/** Reads `?state=…`, for protocols that respond in the query string. */
export function queryState({ query }: CallbackRequest): string {
  return new URLSearchParams(query).get("state") ?? "";
}
