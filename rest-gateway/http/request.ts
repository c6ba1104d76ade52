import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import express from "express";
import type { AbortLike } from "../../engine/concurrency/abort.ts";
import type { Config } from "../../engine/config/config.ts";
import { ApiError } from "../../engine/errors.ts";
import type { Caller } from "../../engine/identity/caller.ts";
import type { BodyLimit } from "../../http/body-limit.ts";
import type { GatewayResponse, ResponseBody } from "./response.ts";

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
  admit(caller: Caller | null): void;
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

export type GatewayHandler = (
  request: GatewayRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

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

export function isPathUnder(folder: string, path: string): boolean {
  return path.startsWith(folder) && (path.length === folder.length || path[folder.length] === "/");
}

/** Told to nobody but the log, in which it is no fault: with nginx's status. */
export function clientDisconnected(cause?: unknown): ApiError {
  return new ApiError(499, "CLIENT_LEFT", "The client disconnected before the response.", { cause });
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

/** An id that is safe in a header, in a log line and in SQL. */
const VALID_ID = /^[\w.:+/=@-]{1,128}$/;

const ID_ENDINGS = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, "0"));
let idPrefix = "";
let nextEnding = ID_ENDINGS.length;

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
export type RequestStages = {
  /** Ends the stage before and begins this one. */
  enter(name: string): void;
  /** `parse;dur=0.1, run;dur=1.9` */
  header(): string;
};

/** A stage that is entered several times, as with several statements, is reported once, with the sum. */
export function makeStages(): RequestStages {
  const durations = new Map<string, number>();
  let current: { name: string; since: number } | null = null;
  const leave = () => {
    if (!current) return;
    const { name, since } = current;
    durations.set(name, (durations.get(name) ?? 0) + performance.now() - since);
    current = null;
  };
  return {
    enter(name) {
      leave();
      current = { name, since: performance.now() };
    },
    header() {
      leave();
      return [...durations].map(([name, milliseconds]) => `${name};dur=${milliseconds.toFixed(1)}`).join(", ");
    },
  };
}

/** When nobody wants to know. */
export const NO_STAGES: RequestStages = { enter: () => {}, header: () => "" };
