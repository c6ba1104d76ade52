import type { Arrival } from "./provider.ts";

/** `?state=…`, of the protocols that answer in the address. */
export function queryState({ query }: Arrival): string {
  return new URLSearchParams(query).get("state") ?? "";
}
