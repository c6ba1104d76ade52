import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { TLSSocket } from "node:tls";
import type { Abort } from "../engine/abort.ts";
import type { BodyLimit } from "../engine/caller/body-limit.ts";
import { ApiError } from "../engine/errors.ts";
import type { Admission } from "./limits/admission.ts";
import type { Stages } from "./stages.ts";

/** What a handler sees of a request; no socket in sight. */
export type GatewayRequest = {
  readonly id: string;
  readonly method: string;
  /** As the client wrote it, still percent-encoded. */
  readonly path: string;
  /** What follows the question mark, or "". */
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly stages: Stages;
  /** Aborted when the client leaves before it is answered. */
  readonly signal: Abort;
  /** Where it came from, as far as the proxies in front are to be believed (TRUST_PROXY). */
  connection(): Connection;
  /** To be told as soon as it is known who asks, and before anything is done for them. Refuses what is too much. */
  readonly admit: Admission["admit"];
  /** Headers of the answer, whatever it will be; those that it has itself go before. */
  tell(headers: Readonly<Record<string, string>>): void;
  /** Reads the body, once. Refuses one that is larger than the limit. */
  readBody(limit: BodyLimit): Promise<Buffer>;
  /** To be told of memory that is taken beside the body, to make something of it. Refuses what is too much. */
  holdMemory(bytes: number): void;
  /** Calls back when the answer has been sent, or the client has left. */
  whenSent(callback: () => void): void;
};

export type Connection = { readonly address: string | null; readonly isSecure: boolean };

/** A body in pieces, each to be asked for when the one before has been sent. Whoever has one reads it to its end or calls `return`. */
export type Flow = AsyncIterableIterator<Piece>;
export type Piece = {
  readonly data: Buffer;
  /** Says that the bytes have been sent and may be overwritten. */
  release(): void;
};

export type Body = string | Buffer | Flow;

export type GatewayResponse<B extends Body = string | Buffer> = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: B | null;
  /** What stands behind the status instead of the usual words. */
  readonly reason?: string | undefined;
};

export type Handler = (request: GatewayRequest) => GatewayResponse<Body> | Promise<GatewayResponse<Body>>;

export function json(status: number, body: unknown, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(body),
  };
}

/** What stands in front of the question mark. */
export function pathOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? target : target.slice(0, mark);
}

/** Proxies may ask for `http://host/path`; who is asked is known, so the path is what counts. */
export function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const path = target.replace(/^https?:\/\/[^/?]*/i, "");
  return path === "" || path.startsWith("?") ? `/${path}` : path;
}

type Means = Omit<GatewayRequest, "method" | "path" | "rawQuery" | "headers">;

export function toGatewayRequest(
  request: IncomingMessage,
  { id, stages, signal, connection, admit, tell, readBody, holdMemory, whenSent }: Means,
): GatewayRequest {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  return {
    id,
    method: request.method ?? "GET",
    path: pathOf(url),
    rawQuery: mark < 0 ? "" : url.slice(mark + 1),
    headers: request.headers,
    stages,
    signal,
    connection,
    admit,
    tell,
    readBody,
    holdMemory,
    whenSent,
  };
}

export function isFlow(body: Body | null): body is Flow {
  return body !== null && typeof body !== "string" && !Buffer.isBuffer(body);
}

/** What every answer says, unless it says otherwise itself. */
export type BaseHeaders = Readonly<Record<string, string>>;

const NO_HEADERS: BaseHeaders = {};

export function send(response: ServerResponse, answer: GatewayResponse, base = NO_HEADERS): void {
  // A client that has left has nothing to be told.
  if (response.destroyed) return;
  response.end(writeHead(response, answer, base));
}

/** After the answer, a client may be read for so long that wants its connection closed. */
const LONGEST_LINGER_MS = 10_000;

/**
 * The connection is closed when the client has sent its body, or does not send on: one that is closed while bytes arrive is
 * reset, and the client may not have read the answer by then (RFC 9112, 9.6).
 */
export function sendAndLinger(
  response: ServerResponse,
  answer: GatewayResponse,
  { base = NO_HEADERS, unread }: { readonly base?: BaseHeaders | undefined; readonly unread: Promise<void> },
): void {
  if (response.destroyed) return;
  const sent = writeHead(response, answer, base);
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
  const head = flat(headers, base);
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
export async function sendFlow(
  response: ServerResponse,
  { status, headers, flow }: Pick<GatewayResponse, "status" | "headers"> & { readonly flow: Flow },
  base = NO_HEADERS,
): Promise<void> {
  try {
    if (response.destroyed) return;
    response.writeHead(status, reasonPhrase(status, undefined), flat(headers, base) as OutgoingHttpHeader[]);
    if (response.req.method !== "HEAD") await pour(flow, response);
    response.end();
  } finally {
    await flow.return?.();
  }
}

async function pour(flow: Flow, response: ServerResponse): Promise<void> {
  for await (const piece of flow) {
    if (response.destroyed) return;
    const hasRoom = response.write(piece.data, () => piece.release());
    if (!hasRoom) await drained(response);
  }
}

/** For how long a client may take nothing: memory waits with it, and often a connection to the database. */
export const STALL_MS = 30_000;

/** Resolves when the client has taken what it was sent, or has left. */
async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stalled = setTimeout(() => reject(new Error("The client takes nothing more")), STALL_MS);
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
export function cutOff({ socket }: ServerResponse): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket?.resetAndDestroy();
}

/** How long an answer is, and so how its end is told, is not for SQL to say. */
const FRAMING = /^(content-length|transfer-encoding)$/i;

/** A flat list is what node writes fastest. */
function flat(headers: GatewayResponse["headers"], base: BaseHeaders): (string | readonly string[])[] {
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
export function clientLeft(cause?: unknown): ApiError {
  return new ApiError(499, "CLIENT_LEFT", "The client left before it was answered.", { cause });
}
