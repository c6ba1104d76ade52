import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { CREDENTIAL_HEADERS, CSRF_TOKEN_HEADER, type GatewayRequest, NO_STAGES } from "#http";
import { LightAbortSignal } from "#runtime/concurrency";

/** Credentials (the caller is stored instead) and headers that make the response conditional. */
const UNSTORED_HEADERS: readonly string[] = [
  ...CREDENTIAL_HEADERS,
  CSRF_TOKEN_HEADER,
  "if-none-match",
  "if-modified-since",
];

/** The parts of a request that are stored to answer it later. */
export type StoredRequest = Pick<GatewayRequest, "id" | "method" | "path" | "rawQuery" | "headers"> & {
  /** The client's address, for quotas. */
  readonly address?: string | null;
};

export function toStoredRequest(request: GatewayRequest): StoredRequest {
  const { id, method, path, rawQuery, headers } = request;
  const kept = Object.entries(headers).filter(([name]) => !UNSTORED_HEADERS.includes(name));
  return { id, method, path, rawQuery, headers: Object.fromEntries(kept), address: request.connection().address };
}

/** Restores a stored request for its handler. No client is connected, so headers and callbacks have no effect. */
export function toGatewayRequest({ headers, address = null, ...kept }: StoredRequest, body: Buffer): GatewayRequest {
  return {
    ...kept,
    headers: withoutRespondAsync(headers),
    stages: NO_STAGES,
    signal: new LightAbortSignal(),
    connection: () => ({ address, isSecure: false }),
    admit: () => {},
    addResponseHeaders: () => {},
    // The body's size was checked when the request arrived.
    readBody: () => Promise.resolve(body),
    receiveBody: async () => Readable.from([body])[Symbol.asyncIterator](),
    streamBody: () => Readable.from([body])[Symbol.asyncIterator](),
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
