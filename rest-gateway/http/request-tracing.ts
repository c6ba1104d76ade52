import type { IncomingMessage, RequestListener } from "node:http";
import type { Tracing } from "../../engine/observability/tracing.ts";
import { pathOfUrl, type ReadClientConnection, toOriginForm } from "./request.ts";
import type { FindRouteTemplate } from "./request-metrics.ts";

type RequestTracingOptions = {
  readonly tracing: Tracing;
  readonly routeOf: FindRouteTemplate;
  readonly readConnection: ReadClientConnection;
};

/** `SpanStatusCode.ERROR` of OpenTelemetry. */
const ERROR = 2;

/** Starts a span for each request, by the semantic conventions for HTTP, without the query string. */
export function traceRequests(
  { tracing, routeOf, readConnection }: RequestTracingOptions,
  listener: RequestListener,
): RequestListener {
  return (request, response) => {
    const { method = "GET" } = request;
    const path = pathOfUrl(toOriginForm(request.url ?? "/"));
    const route = routeOf(path);
    const span = tracing.startSpan(`${method} ${route.template}`, {
      kind: "server",
      remote: { traceparent: singleHeader(request, "traceparent"), tracestate: singleHeader(request, "tracestate") },
      attributes: {
        "http.request.method": method,
        "http.route": route.template,
        "url.path": path,
        ...attributesOf(request, readConnection),
      },
    });
    response.on("close", () => {
      // As in the log: 499 if the client disconnected.
      const status = response.headersSent ? response.statusCode : 499;
      span.setAttributes({
        "http.response.status_code": status,
        "request.id": singleHeader(request, "x-request-id") ?? "",
      });
      if (status >= 500) span.setAttribute("error.type", String(status)).setStatus({ code: ERROR });
      span.end();
    });
    tracing.withSpan(span, () => listener(request, response));
  };
}

function attributesOf(request: IncomingMessage, readConnection: ReadClientConnection) {
  const { address, isSecure } = readConnection(request);
  return {
    "url.scheme": isSecure ? "https" : "http",
    "network.protocol.version": request.httpVersion,
    "server.address": singleHeader(request, "host") ?? "",
    "user_agent.original": singleHeader(request, "user-agent") ?? "",
    ...(address !== null && { "client.address": address }),
  };
}

function singleHeader({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
