import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from "node:http";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { memoize } from "../../engine/cache/memoize.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Logger } from "../../engine/output/log.ts";
import { makeCorsPolicy } from "./cors.ts";
import type { NodeHandler } from "./node-handler.ts";
import { identifyRequest, pathOfUrl, toOriginForm } from "./request.ts";
import { type BaseHeaders, sendResponse } from "./response.ts";
import { mayBeSecure, securityHeaders } from "./security-headers.ts";

type EntryOptions = {
  readonly config: Config;
  readonly log: Logger;
  /** What is answered here, ahead of Express, which would cost it a tenth of its throughput. */
  readonly beforeExpress: { takes(path: string): boolean; readonly answer: NodeHandler };
  readonly app: RequestListener;
  readonly count?: CountRequest | null;
};

/** What every request meets first, whoever answers it: an id, a log line, the headers of a careful server. */
export function makeEntryListener({ config, log, beforeExpress, app, count = null }: EntryOptions): RequestListener {
  const security = securityHeaders({ overHttps: mayBeSecure(config) });
  /** There are but few, so they are put together once. */
  const commonWith = memoize((others: BaseHeaders): BaseHeaders => ({ ...security, ...others }));
  const crossOrigin = makeCorsPolicy(config);
  const echo = makeTraceHeaderEcho(config);

  return (request, response) => {
    request.url = toOriginForm(request.url ?? "/");
    const id = identifyRequest(request);
    logRequest(log, { id, request, response, count });
    const { method = "GET", headers, url } = request;
    const path = pathOfUrl(url);
    const base = echo(headers, commonWith(crossOrigin.headersFor(headers.origin)));
    const preflight = crossOrigin.preflight(method, headers);
    if (preflight) {
      sendResponse(response, { status: 200, headers: { "X-Request-Id": id, ...preflight }, body: null }, base);
    } else if (beforeExpress.takes(path)) {
      // Whoever answers has caught what went wrong; what still arrives here could not even be written.
      beforeExpress.answer(request, response, base).catch(() => response.destroy());
    } else {
      for (const [name, value] of Object.entries(base)) response.setHeader(name, value);
      app(request, response);
    }
  };
}

type EchoTraceHeader = (headers: IncomingHttpHeaders, base: BaseHeaders) => BaseHeaders;

/** PGRST_SERVER_TRACE_HEADER, where the request has it: `X-Request-Id` is in every answer anyhow. */
function makeTraceHeaderEcho({ traceHeader }: Pick<Config, "traceHeader">): EchoTraceHeader {
  const name = traceHeader?.toLowerCase() ?? "x-request-id";
  if (name === "x-request-id") return (_headers, base) => base;
  return (headers, base) => (headers[name] === undefined ? base : { ...base, [traceHeader!]: String(headers[name]) });
}

type ExpressAppOptions = { readonly config: Config; readonly answer: NodeHandler };

/** What is served through Express, in the order in which a request meets it. */
export function makeExpressApp({ config, answer }: ExpressAppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", "simple");
  if (config.trustProxy !== null) app.set("trust proxy", config.trustProxy);
  app.use((request: Request, response: Response, next: NextFunction) => {
    answer(request, response).catch(next);
  });
  // Whoever answers has caught what went wrong; what still arrives here could not even be written.
  app.use((_fault: unknown, _request: Request, response: Response, _next: NextFunction) => void response.destroy());
  return app;
}

/** Told of each request when it is over. */
export type CountRequest = (method: string, path: string, status: number, milliseconds: number) => void;

type LoggedRequest = {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Null: nobody counts. */
  readonly count: CountRequest | null;
};

/** One line per request, when it is over. The query is left out: filters and keys are nobody's business. */
function logRequest(log: Logger, { id, request, response, count }: LoggedRequest): void {
  if (!count && !log.isLevelEnabled("error")) return;
  const startedAt = performance.now();
  const { method = "GET", url = "/" } = request;
  response.on("close", () => {
    // Without a head the client was told nothing: that is nginx's status for one that left.
    const status = response.headersSent ? response.statusCode : 499;
    const duration = performance.now() - startedAt;
    const path = pathOfUrl(url);
    count?.(method, path, status, duration);
    const level = status >= 500 ? "error" : "info";
    if (!log.isLevelEnabled(level)) return;
    const milliseconds = Math.round(duration * 10) / 10;
    const aborted = !response.writableFinished;
    log[level]({ request: id, method, path, status, milliseconds, ...(aborted && { aborted }) }, "request");
  });
}
