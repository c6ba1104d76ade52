import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeader, ServerResponse } from "node:http";
import { ApiError } from "../engine/errors.ts";
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
  readonly signal: AbortSignal;
  /** Reads the body, once; a body beyond the limit is refused with 413. */
  readBody(): Promise<Buffer>;
};

export type GatewayResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | Buffer | null;
};

export type Handler = (request: GatewayRequest) => GatewayResponse | Promise<GatewayResponse>;

export function json(status: number, body: unknown, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify(body),
  };
}

/** Proxies may ask for `http://host/path`; who is asked is known, so the path is what counts. */
export function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const path = target.replace(/^https?:\/\/[^/?]*/i, "");
  return path === "" || path.startsWith("?") ? `/${path}` : path;
}

type Occasion = Pick<GatewayRequest, "id" | "stages" | "signal"> & { readonly maxBodyBytes: number };

export function toGatewayRequest(
  request: IncomingMessage,
  { id, stages, signal, maxBodyBytes }: Occasion,
): GatewayRequest {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  return {
    id,
    method: request.method ?? "GET",
    path: mark < 0 ? url : url.slice(0, mark),
    rawQuery: mark < 0 ? "" : url.slice(mark + 1),
    headers: request.headers,
    stages,
    signal,
    readBody: () => readBody(request, maxBodyBytes),
  };
}

export function send(response: ServerResponse, { status, headers, body }: GatewayResponse): void {
  // A client that has left has nothing to be told.
  if (response.destroyed) return;
  const head: (string | readonly string[])[] = [];
  for (const name in headers) head.push(name, headers[name]!);
  if (status !== 204 && status !== 304 && headers["Content-Length"] === undefined) {
    head.push("Content-Length", String(body === null ? 0 : Buffer.byteLength(body)));
  }
  // A flat list is what node writes fastest.
  response.writeHead(status, head as OutgoingHttpHeader[]);
  response.end(response.req.method === "HEAD" ? null : body);
}

async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const encoding = request.headers["content-encoding"];
  if (encoding && encoding !== "identity") {
    throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", `A body in the encoding "${encoding}" cannot be read.`, {
      hint: "Send it without Content-Encoding.",
      headers: { "Accept-Encoding": "identity" },
    });
  }
  if (Number(request.headers["content-length"]) > limit) throw tooLarge(limit);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function tooLarge(limit: number): ApiError {
  return new ApiError(413, "PAYLOAD_TOO_LARGE", `The body is larger than ${limit} bytes.`, {
    hint: "Send it in several requests.",
    // What the client is still sending would be read as its next request.
    headers: { Connection: "close" },
  });
}
