import type { IncomingHttpHeaders } from "node:http";
import { LightAbort } from "../../engine/abort.ts";
import type { GatewayRequest } from "../http.ts";
import { NO_STAGES } from "../stages.ts";

/** The parts of a request that are stored to answer it later. */
export type StoredRequest = Pick<GatewayRequest, "id" | "method" | "path" | "rawQuery" | "headers">;

/** Never stored: credentials (the caller is stored instead) and headers that make the response conditional. */
const CREDENTIAL_HEADERS: readonly string[] = ["authorization", "cookie", "apikey", "x-api-key", "x-csrf-token"];
const CONDITIONAL_HEADERS: readonly string[] = ["if-none-match", "if-modified-since"];

export function toStoredRequest({ id, method, path, rawQuery, headers }: GatewayRequest): StoredRequest {
  const kept = Object.entries(headers).filter(
    ([name]) => !CREDENTIAL_HEADERS.includes(name) && !CONDITIONAL_HEADERS.includes(name),
  );
  return { id, method, path, rawQuery, headers: Object.fromEntries(kept) };
}

/** Restores a stored request for its handler. No client is connected, so headers and callbacks have no effect. */
export function toGatewayRequest({ headers, ...kept }: StoredRequest, body: Buffer): GatewayRequest {
  return {
    ...kept,
    headers: withoutRespondAsync(headers),
    stages: NO_STAGES,
    signal: new LightAbort(),
    connection: () => ({ address: null, isSecure: false }),
    admit: () => {},
    tell: () => {},
    // The body's size was checked when the request arrived.
    readBody: () => Promise.resolve(body),
    holdMemory: () => {},
    whenSent: () => {},
  };
}

function withoutRespondAsync({ prefer, ...others }: IncomingHttpHeaders): IncomingHttpHeaders {
  const rest = String(prefer ?? "")
    .split(",")
    .map((preference) => preference.trim())
    .filter((preference) => preference !== "" && !/^respond-async\b/i.test(preference));
  return rest.length > 0 ? { ...others, prefer: rest.join(", ") } : others;
}
