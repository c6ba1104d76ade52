import { type OutgoingHttpHeader, type ServerResponse, STATUS_CODES } from "node:http";
import { TLSSocket } from "node:tls";

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

export function jsonResponse(status: number, body: unknown, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(body),
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

/** To be told of each answer when all of it has been written. */
export type TrackUnread = (response: ServerResponse) => void;

/**
 * Bounds what waits for clients who do not read: who takes nothing for a while is cut off, and where all that waits is too
 * much, who has been waited for longest. Refusing new answers instead would let a few who never read shut out everybody.
 */
export function limitUnreadResponses(mostBytes: number, stallMs = CLIENT_STALL_MS): TrackUnread {
  const waiting = new Map<ServerResponse, number>();
  let unreadBytes = 0;

  const forget = (response: ServerResponse) => {
    unreadBytes -= waiting.get(response) ?? 0;
    waiting.delete(response);
  };

  return (response) => {
    const bytes = response.writableLength;
    // As nearly always, the kernel has taken it.
    if (bytes === 0 || response.destroyed) return;
    waiting.set(response, bytes);
    unreadBytes += bytes;
    response.once("close", () => forget(response));
    // Begins anew whenever some of it is taken; when all is, node sets it for the next request.
    response.setTimeout(stallMs, () => abortConnection(response));
    for (const [oldest] of waiting) {
      if (unreadBytes <= mostBytes || oldest === response) return;
      forget(oldest);
      abortConnection(oldest);
    }
  };
}
