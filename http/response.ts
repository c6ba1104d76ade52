import { type OutgoingHttpHeader, type ServerResponse, STATUS_CODES } from "node:http";
import { TLSSocket } from "node:tls";
import { shortenText } from "#runtime";

/** A body in chunks, each requested when the previous one is sent. The consumer reads it to the end or calls `return`. */
export type BodyStream = AsyncIterableIterator<BodyChunk>;
export type BodyChunk = {
  readonly data: Buffer;
  /** Must be called when the bytes are sent and may be overwritten. */
  release(): void;
};

export type ResponseBody = string | Buffer | BodyStream;

export type GatewayResponse<B extends ResponseBody = string | Buffer> = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: B | null;
  /** The number of bytes of a stream, if it is known. */
  readonly bodyLength?: number | undefined;
  /** A reason phrase other than the standard one. */
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

/** Returns one value of `Vary` that names each header once. */
export function mergeVary(...values: readonly (string | readonly string[])[]): string {
  const names = values.flat().flatMap((value) =>
    value
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== ""),
  );
  const isFirst = (name: string, index: number) =>
    names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) === index;
  return names.filter(isFirst).join(", ");
}

/** Headers of every response; the response's own headers take precedence. */
export type BaseHeaders = Readonly<Record<string, string>>;

const NO_HEADERS: BaseHeaders = {};

export function sendResponse(response: ServerResponse, gatewayResponse: GatewayResponse, base = NO_HEADERS): void {
  // The client has disconnected.
  if (response.destroyed) return;
  response.end(writeHead(response, gatewayResponse, base));
}

/** The time for which the connection stays open after the response, to read the rest of the body. */
const LONGEST_LINGER_MS = 10_000;

/**
 * Closes the connection when the client has sent its body or stops sending: a connection that is closed while bytes
 * arrive is reset, and the client may not have read the response by then (RFC 9112, 9.6).
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

/** Returns the body to send after the head. */
function writeHead(
  response: ServerResponse,
  { status, headers, body, reason }: GatewayResponse,
  base: BaseHeaders,
): string | Buffer | null {
  const head = flattenHeaders(headers, base);
  const isHead = response.req.method === "HEAD";
  // The response to HEAD has the length of GET, which is unknown if no body was made (RFC 9110, 8.6).
  const isLengthKnown = status !== 204 && status !== 304 && !(isHead && body === null);
  if (isLengthKnown) head.push("Content-Length", String(body === null ? 0 : Buffer.byteLength(body)));
  response.writeHead(status, reasonPhrase(status, reason), head as OutgoingHttpHeader[]);
  if (isHead) return null;
  // If a string follows, Node would encode the head as UTF-8, which the reason phrase already is.
  return reason === undefined || body === null ? body : Buffer.from(body);
}

const LONGEST_REASON = 200;

/** Returns one line of UTF-8 bytes, like PostgREST. Empty for unknown statuses. */
function reasonPhrase(status: number, reason: string | undefined): string {
  if (reason === undefined) return STATUS_CODES[status] ?? "";
  const line = shortenText(reason, LONGEST_REASON).replace(/\p{Cc}/gu, " ");
  return Buffer.from(line).toString("latin1");
}

/** Sends the body as it is produced, no faster than the client reads it. Rejects if producing or sending fails. */
export async function sendStream(
  response: ServerResponse,
  {
    status,
    headers,
    bodyLength,
    flow,
  }: Pick<GatewayResponse, "status" | "headers" | "bodyLength"> & { readonly flow: BodyStream },
  base = NO_HEADERS,
): Promise<void> {
  try {
    if (response.destroyed) return;
    const head = flattenHeaders(headers, base);
    if (bodyLength !== undefined) head.push("Content-Length", String(bodyLength));
    response.writeHead(status, reasonPhrase(status, undefined), head as OutgoingHttpHeader[]);
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

/** The time for which a client may read nothing: memory, and often a database connection, waits for it. */
const CLIENT_STALL_MS = 30_000;

/** Resolves when the client has read the sent bytes, or has disconnected. */
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
 * Resets the connection: to a client of HTTP/1.0, an orderly close means that the response is complete. TLS connections
 * are destroyed, because their close_notify is not sent then.
 */
export function abortConnection({ socket }: ServerResponse): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket?.resetAndDestroy();
}

/** Headers of the framing, which SQL may not set. */
const FRAMING = /^(content-length|transfer-encoding)$/i;

/** Node writes a flat list fastest. */
function flattenHeaders(headers: GatewayResponse["headers"], base: BaseHeaders): (string | readonly string[])[] {
  const list: (string | readonly string[])[] = [];
  for (const name in base) if (headers[name] === undefined) list.push(name, base[name]!);
  for (const name in headers) if (!isFraming(name)) list.push(name, headers[name]!);
  return list;
}

/** Checks the length first, since every response has a dozen headers. */
function isFraming(name: string): boolean {
  return (name.length === 14 || name.length === 17) && FRAMING.test(name);
}

/** Must be called with each response after all of it is written. */
export type TrackUnread = (response: ServerResponse) => void;

/**
 * Limits the memory of responses that clients do not read: closes a connection that stalls, and the longest waiting
 * ones if all together take too much. Rejecting new requests instead would let a few such clients block everybody.
 */
export function limitUnreadResponses(maxBytes: number, stallMs = CLIENT_STALL_MS): TrackUnread {
  const waiting = new Map<ServerResponse, number>();
  let unreadBytes = 0;

  const forget = (response: ServerResponse) => {
    unreadBytes -= waiting.get(response) ?? 0;
    waiting.delete(response);
  };

  return (response) => {
    const bytes = response.writableLength;
    // The kernel has usually taken all bytes.
    if (bytes === 0 || response.destroyed) return;
    waiting.set(response, bytes);
    unreadBytes += bytes;
    response.once("close", () => forget(response));
    // Restarts whenever bytes are sent; Node resets it for the next request.
    response.setTimeout(stallMs, () => abortConnection(response));
    for (const [oldest] of waiting) {
      if (unreadBytes <= maxBytes || oldest === response) return;
      forget(oldest);
      abortConnection(oldest);
    }
  };
}
