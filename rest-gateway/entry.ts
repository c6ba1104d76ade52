import type { IncomingHttpHeaders, RequestListener } from "node:http";
import type { Config } from "../engine/config/config.ts";
import type { Logger } from "../engine/log.ts";
import { memoized } from "../engine/memoized.ts";
import type { Answer } from "./answer.ts";
import { makeCrossOrigin } from "./cross-origin.ts";
import { type BaseHeaders, originForm, pathOf, send } from "./http.ts";
import { identifyRequest } from "./request-id.ts";
import { type CountRequest, logRequest } from "./request-log.ts";
import { mayBeSecure, securityHeaders } from "./security-headers.ts";

type EntryOptions = {
  readonly config: Config;
  readonly log: Logger;
  /** What is answered here, ahead of Express, which would cost it a tenth of its throughput. */
  readonly ahead: { takes(path: string): boolean; readonly answer: Answer };
  readonly app: RequestListener;
  readonly count?: CountRequest | null;
};

/** What every request meets first, whoever answers it: an id, a log line, the headers of a careful server. */
export function makeEntry({ config, log, ahead, app, count = null }: EntryOptions): RequestListener {
  const security = securityHeaders({ overHttps: mayBeSecure(config) });
  /** There are but few, so they are put together once. */
  const commonWith = memoized((others: BaseHeaders): BaseHeaders => ({ ...security, ...others }));
  const crossOrigin = makeCrossOrigin(config);
  const echo = makeEcho(config);

  return (request, response) => {
    request.url = originForm(request.url ?? "/");
    const id = identifyRequest(request);
    logRequest(log, { id, request, response, count });
    const { method = "GET", headers, url } = request;
    const path = pathOf(url);
    const base = echo(headers, commonWith(crossOrigin.headersFor(headers.origin)));
    const preflight = crossOrigin.preflight(method, headers);
    if (preflight) {
      send(response, { status: 200, headers: { "X-Request-Id": id, ...preflight }, body: null }, base);
    } else if (ahead.takes(path)) {
      // Whoever answers has caught what went wrong; what still arrives here could not even be written.
      ahead.answer(request, response, base).catch(() => response.destroy());
    } else {
      for (const [name, value] of Object.entries(base)) response.setHeader(name, value);
      app(request, response);
    }
  };
}

type Echo = (headers: IncomingHttpHeaders, base: BaseHeaders) => BaseHeaders;

/** PGRST_SERVER_TRACE_HEADER, where the request has it: `X-Request-Id` is in every answer anyhow. */
function makeEcho({ traceHeader }: Pick<Config, "traceHeader">): Echo {
  const name = traceHeader?.toLowerCase() ?? "x-request-id";
  if (name === "x-request-id") return (_headers, base) => base;
  return (headers, base) => (headers[name] === undefined ? base : { ...base, [traceHeader!]: String(headers[name]) });
}
