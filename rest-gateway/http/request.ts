import { randomUUID } from "node:crypto";
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { TLSSocket } from "node:tls";
import express from "express";
import type { AbortLike } from "../../engine/concurrency/abort.ts";
import type { Config } from "../../engine/config/config.ts";
import { ApiError } from "../../engine/errors.ts";
import type { BodyLimit } from "../../http/body-limit.ts";
import type { Admission } from "./limits.ts";

/** An id that is safe in a header, in a log line and in SQL. */
const VALID_ID = /^[\w.:+/=@-]{1,128}$/;

const ID_ENDINGS = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, "0"));
let idPrefix = "";
let nextEnding = ID_ENDINGS.length;

/** When nobody wants to know. */
export const NO_STAGES: RequestStages = { enter: () => {}, header: () => "" };

/** What a handler sees of a request; no socket in sight. */
export type GatewayRequest = {
  readonly id: string;
  readonly method: string;
  /** As the client wrote it, still percent-encoded. */
  readonly path: string;
  /** What follows the question mark, or "". */
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly stages: RequestStages;
  /** Aborted when the client leaves before it is answered. */
  readonly signal: AbortLike;
  /** Where it came from, as far as the proxies in front are to be believed (TRUST_PROXY). */
  connection(): ClientConnection;
  /** To be told as soon as it is known who asks, and before anything is done for them. Refuses what is too much. */
  readonly admit: Admission["admit"];
  /** Headers of the answer, whatever it will be; those that it has itself go before. */
  addResponseHeaders(headers: Readonly<Record<string, string>>): void;
  /** Reads the body, once. Refuses one that is larger than the limit. */
  readBody(limit: BodyLimit): Promise<Buffer>;
  /** To be told of memory that is taken beside the body, to make something of it. Refuses what is too much. */
  holdMemory(bytes: number): void;
  /** Calls back when the answer has been sent, or the client has left. */
  whenSent(callback: () => void): void;
};

export type ClientConnection = { readonly address: string | null; readonly isSecure: boolean };

/** A body in pieces, each to be asked for when the one before has been sent. Whoever has one reads it to its end or calls `return`. */
export type BodyStream = AsyncIterableIterator<BodyChunk>;
export type BodyChunk = {
  readonly data: Buffer;
  /** Says that the bytes have been sent and may be overwritten. */
  release(): void;
};

export type ResponseBody = string | Buffer | BodyStream;

export type GatewayResponse<B extends ResponseBody = string | Buffer> = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: B | null;
  /** What stands behind the status instead of the usual words. */
  readonly reason?: string | undefined;
};

export type GatewayHandler = (
  request: GatewayRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

export function jsonResponse(status: number, body: unknown, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(body),
  };
}

/** What stands in front of the question mark. */
export function pathOfUrl(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? target : target.slice(0, mark);
}

/** Proxies may ask for `http://host/path`; who is asked is known, so the path is what counts. */
export function toOriginForm(target: string): string {
  if (target.startsWith("/")) return target;
  const path = target.replace(/^https?:\/\/[^/?]*/i, "");
  return path === "" || path.startsWith("?") ? `/${path}` : path;
}

type GatewayRequestParts = Omit<GatewayRequest, "method" | "path" | "rawQuery" | "headers">;

export function toGatewayRequest(
  request: IncomingMessage,
  { id, stages, signal, connection, admit, addResponseHeaders, readBody, holdMemory, whenSent }: GatewayRequestParts,
): GatewayRequest {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  return {
    id,
    method: request.method ?? "GET",
    path: pathOfUrl(url),
    rawQuery: mark < 0 ? "" : url.slice(mark + 1),
    headers: request.headers,
    stages,
    signal,
    connection,
    admit,
    addResponseHeaders,
    readBody,
    holdMemory,
    whenSent,
  };
}

export function isBodyStream(body: ResponseBody | null): body is BodyStream {
  return body !== null && typeof body !== "string" && !Buffer.isBuffer(body);
}

/** What every answer says, unless it says otherwise itself. */
export type BaseHeaders = Readonly<Record<string, string>>;

const NO_HEADERS: BaseHeaders = {};

export function sendResponse(response: ServerResponse, gatewayResponse: GatewayResponse, base = NO_HEADERS): void {
  // A client that has left has nothing to be told.
  if (response.destroyed) return;
  response.end(writeHead(response, gatewayResponse, base));
}

/** After the answer, a client may be read for so long that wants its connection closed. */
const LONGEST_LINGER_MS = 10_000;

/**
 * The connection is closed when the client has sent its body, or does not send on: one that is closed while bytes arrive is
 * reset, and the client may not have read the answer by then (RFC 9112, 9.6).
 */
export function sendResponseAndLinger(
  response: ServerResponse,
  gatewayResponse: GatewayResponse,
  { base = NO_HEADERS, unread }: { readonly base?: BaseHeaders | undefined; readonly unread: Promise<void> },
): void {
  if (response.destroyed) return;
  const sent = writeHead(response, gatewayResponse, base);
  if (sent === null) response.flushHeaders();
  else response.write(sent);
  const tooLong = setTimeout(() => response.end(), LONGEST_LINGER_MS).unref();
  void unread.then(() => {
    clearTimeout(tooLong);
    response.end();
  });
}

/** Returns the body that is to follow. */
function writeHead(
  response: ServerResponse,
  { status, headers, body, reason }: GatewayResponse,
  base: BaseHeaders,
): string | Buffer | null {
  const head = flattenHeaders(headers, base);
  const isHead = response.req.method === "HEAD";
  // With HEAD it is the length that GET would have, which nobody knows where no body was made (RFC 9110, 8.6).
  const isLengthKnown = status !== 204 && status !== 304 && !(isHead && body === null);
  if (isLengthKnown) head.push("Content-Length", String(body === null ? 0 : Buffer.byteLength(body)));
  response.writeHead(status, reasonPhrase(status, reason), head as OutgoingHttpHeader[]);
  if (isHead) return null;
  // In front of a string node would write the head as UTF-8, in which the phrase is already.
  return reason === undefined || body === null ? body : Buffer.from(body);
}

const LONGEST_REASON = 200;

/** One line, of the bytes that UTF-8 has for it, as PostgREST sends it. Nothing where nobody knows the status. */
function reasonPhrase(status: number, reason: string | undefined): string {
  if (reason === undefined) return STATUS_CODES[status] ?? "";
  const line = reason.slice(0, LONGEST_REASON).replace(/\p{Cc}/gu, " ");
  return Buffer.from(line).toString("latin1");
}

/** What is sent as it comes, and no faster than the client takes it. Rejects when either of the two fails. */
export async function sendStream(
  response: ServerResponse,
  { status, headers, flow }: Pick<GatewayResponse, "status" | "headers"> & { readonly flow: BodyStream },
  base = NO_HEADERS,
): Promise<void> {
  try {
    if (response.destroyed) return;
    response.writeHead(status, reasonPhrase(status, undefined), flattenHeaders(headers, base) as OutgoingHttpHeader[]);
    if (response.req.method !== "HEAD") await writeStream(flow, response);
    response.end();
  } finally {
    await flow.return?.();
  }
}

async function writeStream(flow: BodyStream, response: ServerResponse): Promise<void> {
  for await (const piece of flow) {
    if (response.destroyed) return;
    const hasRoom = response.write(piece.data, () => piece.release());
    if (!hasRoom) await waitForDrain(response);
  }
}

/** For how long a client may take nothing: memory waits with it, and often a connection to the database. */
export const CLIENT_STALL_MS = 30_000;

/** Resolves when the client has taken what it was sent, or has left. */
async function waitForDrain(response: ServerResponse): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stalled = setTimeout(() => reject(new Error("The client takes nothing more")), CLIENT_STALL_MS);
  response.on("drain", resolve).on("close", resolve);
  try {
    await promise;
  } finally {
    clearTimeout(stalled);
    response.off("drain", resolve).off("close", resolve);
  }
}

/**
 * By a reset: to a client of HTTP/1.0, and many a proxy is one, an orderly end means that the answer is complete. TLS has
 * an end of its own, which does not come then.
 */
export function abortConnection({ socket }: ServerResponse): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket?.resetAndDestroy();
}

/** How long an answer is, and so how its end is told, is not for SQL to say. */
const FRAMING = /^(content-length|transfer-encoding)$/i;

/** A flat list is what node writes fastest. */
function flattenHeaders(headers: GatewayResponse["headers"], base: BaseHeaders): (string | readonly string[])[] {
  const list: (string | readonly string[])[] = [];
  for (const name in base) if (headers[name] === undefined) list.push(name, base[name]!);
  for (const name in headers) if (!isFraming(name)) list.push(name, headers[name]!);
  return list;
}

/** By the length first, since every answer has a dozen names. */
function isFraming(name: string): boolean {
  return (name.length === 14 || name.length === 17) && FRAMING.test(name);
}

/** Told to nobody but the log, in which it is no fault: with nginx's status. */
export function clientDisconnected(cause?: unknown): ApiError {
  return new ApiError(499, "CLIENT_LEFT", "The client left before it was answered.", { cause });
}

/** Where a request came from, as far as the proxies in front are to be believed. */
export type ReadClientConnection = (request: IncomingMessage) => ClientConnection;

type TrustsProxy = (address: string, hop: number) => boolean;

/** TRUST_PROXY as Express reads it, for requests that Express never sees, too. */
export function makeClientConnectionReader({ trustProxy }: Pick<Config, "trustProxy">): ReadClientConnection {
  if (trustProxy === null || trustProxy === false) return directConnection;
  const trust: TrustsProxy = express().set("trust proxy", trustProxy).get("trust proxy fn");
  return (request) => {
    const direct = directConnection(request);
    if (direct.address === null) return direct;
    const { "x-forwarded-for": chain, "x-forwarded-proto": scheme } = request.headers;
    const isProxy = trust(direct.address, 0);
    const forwardedScheme = isProxy && typeof scheme === "string" ? scheme.split(",", 1)[0]!.trim() : null;
    return {
      address: firstUntrustedAddress([direct.address, ...forwardedAddresses(chain)], trust),
      isSecure: forwardedScheme === null ? direct.isSecure : forwardedScheme === "https",
    };
  };
}

function directConnection({ socket }: IncomingMessage): ClientConnection {
  return { address: socket.remoteAddress ?? null, isSecure: (socket as Partial<TLSSocket>).encrypted === true };
}

/** Each proxy has written behind those before it whom it was asked by. */
function forwardedAddresses(chain: string | readonly string[] | undefined): string[] {
  return String(chain ?? "")
    .split(",")
    .map((address) => address.trim())
    .filter((address) => address !== "")
    .reverse();
}

/** The first that no trusted proxy speaks for. */
function firstUntrustedAddress(addresses: readonly string[], trust: TrustsProxy): string {
  const end = addresses.findIndex((address, hop) => !trust(address, hop));
  return end < 0 ? addresses.at(-1)! : addresses[end]!;
}

/** Takes the request's id from its sender or makes one; the answer, the log and SQL show the same. */
export function identifyRequest(request: IncomingMessage): string {
  const sentId = request.headers["x-request-id"];
  const id = typeof sentId === "string" && VALID_ID.test(sentId) ? sentId : makeRequestId();
  request.headers["x-request-id"] = id;
  return id;
}

/** To draw a UUID for each request costs a fiftieth of its time, so 256 of them differ in their last two digits. */
function makeRequestId(): string {
  if (nextEnding === ID_ENDINGS.length) {
    idPrefix = randomUUID().slice(0, -2);
    nextEnding = 0;
  }
  return idPrefix + ID_ENDINGS[nextEnding++];
}

/** The stages of one request and how long each took, for the Server-Timing header. */
type RequestStages = {
  /** Ends the stage before and begins this one. */
  enter(name: string): void;
  /** `parse;dur=0.1, run;dur=1.9` */
  header(): string;
};

export function makeStages(): RequestStages {
  const taken: { name: string; milliseconds: number }[] = [];
  let current: { name: string; since: number } | null = null;
  const leave = () => {
    if (current) taken.push({ name: current.name, milliseconds: performance.now() - current.since });
    current = null;
  };
  return {
    enter(name) {
      leave();
      current = { name, since: performance.now() };
    },
    header() {
      leave();
      return taken.map(({ name, milliseconds }) => `${name};dur=${milliseconds.toFixed(1)}`).join(", ");
    },
  };
}
