import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import express from "express";
import type { Caller, ClientInfo } from "#accounts/identity";
import type { Config } from "#config";
import type { AbortLike } from "#runtime/concurrency";
import { HttpError } from "./http-error.ts";
import type { GatewayResponse, ResponseBody } from "./response.ts";

/** The maximum size of a request body, and the share of the memory for bodies that it uses. */
export type BodyLimit = {
  readonly bytes: number;
  readonly isAnonymous: boolean;
  /** The hint of the error for a larger body. */
  readonly hint?: string;
};

/** A request without its socket, for handlers. */
export type GatewayRequest = {
  readonly id: string;
  readonly method: string;
  /** The path as the client sent it, percent-encoded. */
  readonly path: string;
  /** The part after the question mark, or "". */
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly stages: RequestStages;
  /** Aborted when the client disconnects before the response. */
  readonly signal: AbortLike;
  /** Returns the client's address and scheme, as far as TRUST_PROXY trusts proxies. */
  connection(): ClientConnection;
  /**
   * Call as soon as the caller is known and before any work; again if the request turns out to count as several. Throws
   * 429 above the rate limit.
   */
  admit(caller: Caller | null, count?: number): void;
  /** Adds headers to the response, also to an error; the response's own headers take precedence. */
  addResponseHeaders(headers: Readonly<Record<string, string>>): void;
  /** Reads the body, once. Rejects a body above the limit. */
  readBody(limit: BodyLimit): Promise<Buffer>;
  /**
   * Returns the chunks of the body, once and instead of `readBody`. Resolves when the body or its first megabyte has
   * arrived. Rejects a body above the limit, or a slow one, also while it is read.
   */
  receiveBody(limit: BodyLimit): Promise<AsyncIterableIterator<Buffer>>;
  /** Returns the chunks of the body, once and instead of `readBody`; the reader bounds its size. */
  streamBody(): AsyncIterableIterator<Buffer>;
  /** Counts the memory that parsing the body takes in addition. Throws if it does not fit. */
  holdMemory(bytes: number): void;
  /** Runs the callback when the response is sent or the client has disconnected. */
  whenSent(callback: () => void): void;
  /** Hands the connection over to a WebSocket server, which replaces the response. Undefined if the client asks for no WebSocket. */
  readonly handOver?: ((accept: UpgradeListener) => void) | undefined;
};

/** Takes over the connection of a request for a WebSocket. `head` is what the client has sent after the request. */
export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export type ClientConnection = { readonly address: string | null; readonly isSecure: boolean };

export type GatewayHandler = (
  request: GatewayRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

/** The handlers by path and method. */
export type GatewayRoutes = Readonly<Record<string, Readonly<Record<string, GatewayHandler>>>>;

/**
 * Limits requests that create an account or send an e-mail, per client address: they hash a password or reach a third
 * person. Throws 429 above the limit.
 */
export type LimitExpensiveRequest = (request: LimitedRequest, count?: number) => Promise<void>;

type LimitedRequest = { readonly connection: () => Pick<ClientConnection, "address"> };

type GatewayRequestParts = Omit<GatewayRequest, "method" | "path" | "rawQuery" | "headers">;

export function toGatewayRequest(
  request: IncomingMessage,
  {
    id,
    stages,
    signal,
    connection,
    admit,
    addResponseHeaders,
    readBody,
    receiveBody,
    streamBody,
    holdMemory,
    whenSent,
    handOver,
  }: GatewayRequestParts,
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
    receiveBody,
    streamBody,
    holdMemory,
    whenSent,
    handOver,
  };
}

/** Returns the part before the question mark. */
export function pathOfUrl(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? target : target.slice(0, mark);
}

/** Proxies may send the absolute form `http://host/path`; only the path matters. */
export function toOriginForm(target: string): string {
  if (target.startsWith("/")) return target;
  const path = target.replace(/^https?:\/\/[^/?]*/i, "");
  return path === "" || path.startsWith("?") ? `/${path}` : path;
}

/** Returns the client of the request, for the audit log and for throttling. */
export function clientInfoOf({ id, headers, connection }: GatewayRequest): ClientInfo {
  return { address: connection().address, userAgent: headers["user-agent"] ?? null, requestId: id };
}

export function isReadMethod(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

export function isPathUnder(folder: string, path: string): boolean {
  return path.startsWith(folder) && (path.length === folder.length || path[folder.length] === "/");
}

/** The error is only logged, below the level of errors; 499 is nginx's status. */
export function clientDisconnected(cause?: unknown): HttpError {
  return new HttpError(499, "CLIENT_LEFT", "The client disconnected before the response.", { cause });
}

/** Finds the client's address and scheme, as far as TRUST_PROXY trusts proxies. */
export type ReadClientConnection = (request: IncomingMessage) => ClientConnection;

type TrustsProxy = (address: string, hop: number) => boolean;

/** Interprets TRUST_PROXY like Express, also for requests that bypass Express. */
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

/** Each proxy appends the address of its client; the nearest address comes first. */
function forwardedAddresses(chain: string | readonly string[] | undefined): string[] {
  return String(chain ?? "")
    .split(",")
    .map((address) => address.trim())
    .filter((address) => address !== "")
    .reverse();
}

/** Returns the first address that is not a trusted proxy. */
function firstUntrustedAddress(addresses: readonly string[], trust: TrustsProxy): string {
  const end = addresses.findIndex((address, hop) => !trust(address, hop));
  return end < 0 ? addresses.at(-1)! : addresses[end]!;
}

/** A request id that is safe in headers, logs and SQL. */
const VALID_ID = /^[\w.:+/=@-]{1,128}$/;

const ID_ENDINGS = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, "0"));
let idPrefix = "";
let nextEnding = ID_ENDINGS.length;

/** Uses the client's request id or generates one; response, log and SQL have the same id. */
export function identifyRequest(request: IncomingMessage): string {
  const sentId = request.headers["x-request-id"];
  const id = typeof sentId === "string" && VALID_ID.test(sentId) ? sentId : makeRequestId();
  request.headers["x-request-id"] = id;
  return id;
}

/** Generating a UUID costs a fiftieth of a request, so 256 ids share one and differ in the last two digits. */
function makeRequestId(): string {
  if (nextEnding === ID_ENDINGS.length) {
    idPrefix = randomUUID().slice(0, -2);
    nextEnding = 0;
  }
  return idPrefix + ID_ENDINGS[nextEnding++];
}

/** The durations of a request's stages, for the Server-Timing header. */
type RequestStages = {
  /** Ends the current stage and begins this one. */
  enter(name: string): void;
  /** Returns `parse;dur=0.1, run;dur=1.9`; a refused request has the stages that it reached. */
  header(): string;
};

/** PostgREST's names of stages, with our stages that form them. */
const POSTGREST_STAGES = [
  ["jwt", ["authenticate"]],
  ["transaction", ["query", "run"]],
  ["response", ["respond"]],
] as const;

/**
 * A stage that is entered several times, for example for several statements, is reported once, with the sum. The table
 * interface also reports PostgREST's stages, which its clients read.
 */
export function makeStages(url: string): RequestStages {
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
      const stages = url.startsWith(TABLE_PREFIX) ? [...durations, ...toPostgrestStages(durations)] : [...durations];
      return stages.map(([name, milliseconds]) => `${name};dur=${milliseconds.toFixed(1)}`).join(", ");
    },
  };
}

function toPostgrestStages(durations: ReadonlyMap<string, number>): (readonly [name: string, milliseconds: number])[] {
  return POSTGREST_STAGES.flatMap(([name, stages]) => {
    const entered = stages.flatMap((stage) => durations.get(stage) ?? []);
    return entered.length === 0 ? [] : [[name, entered.reduce((sum, each) => sum + each, 0)] as const];
  });
}

/** The stages of requests without Server-Timing. */
export const NO_STAGES: RequestStages = { enter: () => {}, header: () => "" };

const WRITE_METHODS: ReadonlySet<string> = new Set(["POST", "PATCH", "PUT", "DELETE"]);

/** A media range of an Accept header, without spaces: `application/json;version=2`. */
type MediaRange = {
  readonly type: string;
  /** A number from 0 (not acceptable) to 1. */
  readonly quality: number;
  /** The precision; of two ranges with the same quality the more specific one comes first. */
  readonly precision: number;
};

/** Parses `text/csv, application/json;q=0.9`; the best range comes first. */
export function readMediaRanges(accept: string): readonly MediaRange[] {
  return accept
    .split(",")
    .map(toMediaRange)
    .sort((a, b) => b.quality - a.quality || b.precision - a.precision);
}

/** Parameters after `q` are ignored (RFC 9110, 12.5.1). */
function toMediaRange(text: string): MediaRange {
  const [type = "", quality = ""] = text.replaceAll(/\s/g, "").split(/;q=/i, 2);
  const number = /^\d+(\.\d+)?/.exec(quality)?.[0] ?? "1";
  return { type, quality: Number(number), precision: countCharacter(type, ";") - countCharacter(type, "*") };
}

/** True if the client names HTML and prefers it to JSON, like browsers that navigate. */
export function prefersHtml({ accept = "" }: Pick<IncomingHttpHeaders, "accept">): boolean {
  if (!accept.includes("text/html")) return false;
  const ranges = readMediaRanges(accept);
  const qualityOf = (isMeant: (type: string) => boolean) =>
    Math.max(0, ...ranges.flatMap(({ type, quality }) => (isMeant(type) ? [quality] : [])));
  return qualityOf((type) => type === "text/html") > qualityOf((type) => /^application\/(.*\+)?json(;|$)/.test(type));
}

function countCharacter(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** Returns the schema that the request selects: `Content-Profile` for writes, `Accept-Profile` for reads. */
export function profileHeader(method: string, headers: IncomingHttpHeaders): string | undefined {
  return headers[WRITE_METHODS.has(method) ? "content-profile" : "accept-profile"] as string | undefined;
}

/** Clients send UTF-8 or Latin-1; Node decodes header bytes as Latin-1. */
export function decodeSchemaName(header: string, schemas: readonly string[]): string {
  return schemas.includes(header) ? header : Buffer.from(header, "latin1").toString();
}

/** Returns the prefix of links in bodies: PUBLIC_URL, or nothing if it is not set. */
export function publicBaseUrl(publicUrl: string | null): string {
  return publicUrl?.replace(/\/$/, "") ?? "";
}

/** Returns the path of PUBLIC_URL, for headers that are relative to the requested host: a proxy may add a path prefix. */
export function publicBasePath(publicUrl: string | null): string {
  return publicUrl === null ? "" : new URL(publicUrl).pathname.replace(/\/$/, "");
}

/** The path prefix of the table interface. */
export const TABLE_PREFIX = "/rest/v1";
