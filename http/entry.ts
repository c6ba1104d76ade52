import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from "node:http";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import type { Config } from "#config";
import { memoize } from "#runtime";
import type { Logger } from "#runtime/log";
import type { NodeHandler } from "./node-handler.ts";
import { identifyRequest, pathOfUrl, toOriginForm } from "./request.ts";
import { type BaseHeaders, sendResponse } from "./response.ts";
import { makeCorsPolicy, mayBeSecure, securityHeaders } from "./response-headers.ts";
import { finalStatusOf } from "./upgrade-response.ts";

type EntryOptions = {
  readonly config: Config;
  readonly log: Logger;
  /** Paths that are handled without Express, which costs a tenth of the throughput. */
  readonly beforeExpress: { takes(path: string): boolean; readonly answer: NodeHandler };
  readonly app: RequestListener;
  /** Paths whose handlers answer preflights themselves; by default there are none. */
  readonly answersPreflights?: (path: string) => boolean;
  /** The counter; requests are not counted without it. */
  readonly counter?: RequestCounter;
};

/** The first listener of every request: request id, log line, security headers, CORS. */
export function makeEntryListener({
  config,
  log,
  beforeExpress,
  app,
  answersPreflights = () => false,
  counter,
}: EntryOptions): RequestListener {
  const security = securityHeaders({ overHttps: mayBeSecure(config) });
  /** Few combinations exist, so each is merged once. */
  const commonWith = memoize((others: BaseHeaders): BaseHeaders => ({ ...security, ...others }));
  const crossOrigin = makeCorsPolicy(config);
  const echo = makeTraceHeaderEcho(config);

  return (request, response) => {
    request.url = toOriginForm(request.url ?? "/");
    const id = identifyRequest(request);
    logRequest(log, { id, request, response, counter });
    const { method = "GET", headers, url } = request;
    const path = pathOfUrl(url);
    const base = echo(headers, commonWith(crossOrigin.headersFor(headers.origin)));
    const preflight = answersPreflights(path) ? null : crossOrigin.preflight(method, headers);
    if (preflight) {
      sendResponse(response, { status: 200, headers: { "X-Request-Id": id, ...preflight }, body: null }, base);
    } else if (beforeExpress.takes(path)) {
      // The handler catches its errors; what arrives here could not be written to the socket.
      beforeExpress.answer(request, response, base).catch(() => response.destroy());
    } else {
      for (const [name, value] of Object.entries(base)) response.setHeader(name, value);
      app(request, response);
    }
  };
}

type EchoTraceHeader = (headers: IncomingHttpHeaders, base: BaseHeaders) => BaseHeaders;

/** Echoes the header PGRST_SERVER_TRACE_HEADER; every response has `X-Request-Id` anyway. */
function makeTraceHeaderEcho({ traceHeader }: Pick<Config, "traceHeader">): EchoTraceHeader {
  const name = traceHeader?.toLowerCase() ?? "x-request-id";
  if (name === "x-request-id") return (_headers, base) => base;
  return (headers, base) => (headers[name] === undefined ? base : { ...base, [traceHeader!]: String(headers[name]) });
}

type ExpressAppOptions = { readonly config: Config; readonly answer: NodeHandler };

/** The Express application. */
export function makeExpressApp({ config, answer }: ExpressAppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", "simple");
  if (config.trustProxy !== null) app.set("trust proxy", config.trustProxy);
  app.use((request: Request, response: Response, next: NextFunction) => {
    answer(request, response).catch(next);
  });
  // The handler catches its errors; what arrives here could not be written to the socket.
  app.use((_fault: unknown, _request: Request, response: Response, _next: NextFunction) => void response.destroy());
  return app;
}

export type RequestCounter = {
  /** True if requests are counted even if they are not logged. */
  isWatched(): boolean;
  count(request: FinishedRequest): void;
};

export type FinishedRequest = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly milliseconds: number;
};

type LoggedRequest = {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly counter: RequestCounter | undefined;
};

/** A page of Studio loads several of these files, which would hide the lines of other requests. */
const STUDIO_FILE = /^\/studio\/app[@/]/;

/** Logs one line when a request is finished, without the query string, which may hold keys and personal data. */
function logRequest(log: Logger, { id, request, response, counter }: LoggedRequest): void {
  if (!counter?.isWatched() && !log.isLevelEnabled("error")) return;
  const startedAt = performance.now();
  const { method = "GET", url = "/" } = request;
  response.on("close", () => {
    const status = finalStatusOf(response);
    const duration = performance.now() - startedAt;
    const path = pathOfUrl(url);
    counter?.count({ id, method, path, status, milliseconds: duration });
    const level = status >= 500 ? "error" : status < 400 && STUDIO_FILE.test(path) ? "debug" : "info";
    if (!log.isLevelEnabled(level)) return;
    const milliseconds = Math.round(duration * 10) / 10;
    const aborted = status !== 101 && !response.writableFinished;
    log[level]({ request: id, method, path, status, milliseconds, ...(aborted && { aborted }) }, "request");
  });
}
