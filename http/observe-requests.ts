import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import {
  BUCKET_COUNT,
  counter,
  DurationHistogram,
  gauge,
  histogram,
  type Metric,
  type MetricSample,
  RecentRequests,
  type RequestLog,
  type RequestTotals,
  type Tracing,
} from "#http/observability";
import { memoize } from "#runtime";
import type { FinishedRequest } from "./entry.ts";
import { isPathUnder, pathOfUrl, type ReadClientConnection, TABLE_PREFIX as TABLES, toOriginForm } from "./request.ts";
import { finalStatusOf } from "./upgrade-response.ts";

const FUNCTION_CALLS = `${TABLES}/rpc/`;
const VERSION_PREFIX = /^\/api\/v\d(?=\/|$)/;
/** Path levels of the plain REST interface; actions and nested collections share a level. */
const RESOURCE_LEVELS = [
  "",
  "/{collection}",
  "/{collection}/{id}",
  "/{collection}/{id}/{name}",
  "/{collection}/{id}/{name}/{id}",
];
const DEEPER_LEVEL = "/{other}";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

type RouteCounter = {
  readonly route: RouteTemplate;
  readonly method: string;
  durations: DurationHistogram;
  statuses: Map<number, number>;
};

/** The time for which requests are counted after a request for the counts. */
const WATCH_MS = 60_000;

/** Counts requests by route template, method and status. */
export class RequestMetrics {
  /** True if requests are counted even if they are not logged, which costs one or two percent of a small request. */
  isWatched: boolean;
  readonly recent = new RecentRequests();
  readonly #log: RequestLog | null;
  readonly #counters = new Map<RouteTemplate, Map<string, RouteCounter>>();
  #unwatch: NodeJS.Timeout | undefined;

  constructor({ isWatched, log = null }: Pick<RequestMetrics, "isWatched"> & { readonly log?: RequestLog | null }) {
    this.isWatched = isWatched || log !== null;
    this.#log = log;
  }

  /** Counts all requests of the next minute. */
  watch(): void {
    if (this.isWatched && !this.#unwatch) return;
    this.isWatched = true;
    clearTimeout(this.#unwatch);
    this.#unwatch = setTimeout(() => {
      this.isWatched = false;
      this.#unwatch = undefined;
    }, WATCH_MS).unref();
  }

  count(route: RouteTemplate, request: FinishedRequest): void {
    const { method, status, milliseconds } = request;
    const entry = this.#counters.get(route)?.get(method) ?? this.#open(route, method);
    entry.statuses.set(status, (entry.statuses.get(status) ?? 0) + 1);
    entry.durations.add(milliseconds);
    const kept = this.recent.add({ ...request, at: Date.now(), interface: route.interface });
    this.#log?.add(kept);
  }

  totals(): ReadonlyMap<string, RequestTotals> {
    const totals = new Map<string, { statuses: Map<number, number>; buckets: Float64Array }>();
    for (const { route, durations, statuses } of this.#entries()) {
      const total = totals.get(route.interface) ?? { statuses: new Map(), buckets: new Float64Array(BUCKET_COUNT) };
      totals.set(route.interface, total);
      durations.addTo(total.buckets);
      for (const [status, count] of statuses) total.statuses.set(status, (total.statuses.get(status) ?? 0) + count);
    }
    return totals;
  }

  #entries(): RouteCounter[] {
    return [...this.#counters.values()].flatMap((methods) => [...new Set(methods.values())]);
  }

  metrics(): readonly Metric[] {
    const entries = this.#entries();
    return [
      counter("http_requests_total", "Requests that were answered.", entries.flatMap(statusesOf)),
      histogram("http_request_duration_seconds", "Time from the request's head to the end of the response.", (name) =>
        entries.flatMap((entry) => entry.durations.samples(name, labelsOf(entry))),
      ),
    ];
  }

  #open(route: RouteTemplate, method: string): RouteCounter {
    const methods = this.#counters.get(route) ?? new Map<string, RouteCounter>();
    this.#counters.set(route, methods);
    const counted = METHODS.has(method) ? method : "other";
    const entry = methods.get(counted) ?? {
      route,
      method: counted,
      durations: new DurationHistogram(),
      statuses: new Map(),
    };
    methods.set(counted, entry).set(method, entry);
    return entry;
  }
}

function labelsOf({ route, method }: RouteCounter) {
  return { interface: route.interface, route: route.template, method };
}

function statusesOf(entry: RouteCounter): MetricSample[] {
  return [...entry.statuses].map(([status, value]) => ({ labels: { ...labelsOf(entry), status }, value }));
}

/** Counts connections and bytes, including WebSockets, from the sockets' own counters: there is no cost per request. */
export class HttpTraffic {
  readonly #open = new Set<Socket>();
  #received = 0;
  #sent = 0;

  follow(server: Server): void {
    server.on("connection", (socket: Socket) => {
      this.#open.add(socket);
      socket.once("close", () => {
        this.#open.delete(socket);
        this.#received += socket.bytesRead;
        this.#sent += socket.bytesWritten;
      });
    });
  }

  metrics(): readonly Metric[] {
    let [received, sent] = [this.#received, this.#sent];
    for (const socket of this.#open) {
      received += socket.bytesRead;
      sent += socket.bytesWritten;
    }
    return [
      gauge("http_connections", "Open client connections, WebSockets included.", this.#open.size),
      counter("http_received_bytes_total", "Bytes received from clients.", received),
      counter("http_sent_bytes_total", "Bytes sent to clients.", sent),
    ];
  }
}

/** A path template such as `/users/{id}`, for labels of low cardinality. */
type RouteTemplate = { readonly interface: string; readonly template: string };

export type FindRouteTemplate = (path: string) => RouteTemplate;

type RoutePaths = {
  /** Exact paths. */
  readonly paths: readonly string[];
  /** Path prefixes. */
  readonly folders: readonly string[];
};

/** Maps a path to its template, whether or not the resource exists: for metrics and traces. */
export function makeRouteTemplateFinder({ paths, folders }: RoutePaths): FindRouteTemplate {
  // One object per template, because counters are looked up by identity.
  const templateOf = memoize((template: string): RouteTemplate => ({ interface: interfaceOf(template), template }));
  const exact = new Map(paths.map((path) => [path, templateOf(path)]));
  const below = folders.map((folder) => ({
    folder,
    itself: templateOf(folder),
    inside: templateOf(`${folder}/{name}`),
  }));
  const [root, table, call] = [
    templateOf(`${TABLES}/`),
    templateOf(`${TABLES}/{table}`),
    templateOf(`${FUNCTION_CALLS}{function}`),
  ];

  return (path) => {
    if (isPathUnder(TABLES, path)) {
      if (path.startsWith(FUNCTION_CALLS)) return call;
      return path.length > TABLES.length + 1 ? table : root;
    }
    const route = exact.get(path);
    if (route) return route;
    for (const { folder, itself, inside } of below) {
      if (isPathUnder(folder, path)) return path.length > folder.length + 1 ? inside : itself;
    }
    return templateOf(resourceTemplate(path));
  };
}

/** Returns `/api/v1/{collection}/{id}`, also for unknown collections. */
function resourceTemplate(path: string): string {
  const base = path.startsWith("/api/v") ? (VERSION_PREFIX.exec(path)?.[0] ?? "") : "";
  let levels = 0;
  for (let slash = path.indexOf("/", base.length); slash >= 0; slash = path.indexOf("/", slash + 1)) levels++;
  const template = RESOURCE_LEVELS[levels] ?? DEEPER_LEVEL;
  return base === "" ? template : `${base}${template}`;
}

function interfaceOf(template: string): string {
  if (template.startsWith(TABLES)) return "table";
  if (template.startsWith("/graphql")) return "graphql";
  if (template.startsWith("/realtime/")) return "realtime";
  if (template.startsWith("/admin/")) return "admin";
  if (/^\/(auth|api\/(auth|mfa))\//.test(template)) return "auth";
  return template.includes("{collection}") || template.endsWith(DEEPER_LEVEL) ? "resource" : "service";
}

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
      const status = finalStatusOf(response);
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
