import type { IncomingHttpHeaders } from "node:http";
import { LightAbort } from "../../engine/abort.ts";
import type { GatewayRequest } from "../http.ts";
import { NO_STAGES } from "../stages.ts";

/** All of a request that counts when it is answered later. */
export type KeptRequest = Pick<GatewayRequest, "id" | "method" | "path" | "rawQuery" | "headers">;

/** What lets somebody in is not written down: who asked is known. Nor is what would have it put off once more. */
const LEFT_OUT: readonly string[] = ["authorization", "cookie", "apikey", "x-api-key", "x-csrf-token"];
const LATER: readonly string[] = ["if-none-match", "if-modified-since"];

export function keepRequest({ id, method, path, rawQuery, headers }: GatewayRequest): KeptRequest {
  const kept = Object.entries(headers).filter(([name]) => !LEFT_OUT.includes(name) && !LATER.includes(name));
  return { id, method, path, rawQuery, headers: Object.fromEntries(kept) };
}

/** The request as it came, for who answers it now: nobody waits at its other end. */
export function asRequest({ headers, ...kept }: KeptRequest, body: Buffer): GatewayRequest {
  return {
    ...kept,
    headers: withoutLater(headers),
    stages: NO_STAGES,
    signal: new LightAbort(),
    connection: () => ({ address: null, isSecure: false }),
    admit: () => {},
    tell: () => {},
    // Its length was looked at when it came.
    readBody: () => Promise.resolve(body),
    holdMemory: () => {},
    whenSent: () => {},
  };
}

function withoutLater({ prefer, ...others }: IncomingHttpHeaders): IncomingHttpHeaders {
  const rest = String(prefer ?? "")
    .split(",")
    .map((preference) => preference.trim())
    .filter((preference) => preference !== "" && !/^respond-async\b/i.test(preference));
  return rest.length > 0 ? { ...others, prefer: rest.join(", ") } : others;
}
