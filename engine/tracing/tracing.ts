import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, Context, Span, SpanKind, Tracer } from "@opentelemetry/api";
import type { Config } from "../config/config.ts";
import type { Observe } from "../database/observe.ts";
import type { Logger } from "../log.ts";
import { observeStatements } from "./statement-spans.ts";
import { readTraceparent } from "./traceparent.ts";
import type { TraceExportSettings } from "./tracer-provider.ts";

export type { Span } from "@opentelemetry/api";

/** The trace that the client has begun: the headers of W3C Trace Context. */
export type RemoteTraceContext = {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
};

type SpanOptions = { readonly kind: "server" | "client" | "internal"; readonly attributes?: Attributes };

export type Tracing = {
  /** Starts a span under the current one, or in the remote trace. The caller ends it. */
  startSpan(name: string, beginning: SpanOptions & { readonly remote?: RemoteTraceContext }): Span;
  /** Runs the work with this span as the parent of the spans that it starts. */
  withSpan<T>(span: Span, work: () => T): T;
  /** Runs the work in a new span. */
  traceWork<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** Records a span for each SQL statement that runs inside a span. */
  readonly observe: Observe;
  /** Sends the remaining spans. */
  close(): Promise<void>;
};

type Settings = TraceExportSettings & Pick<Config, "tracesDisabled" | "tracesExporter">;

/** How long sending the last spans may take. */
const FLUSH_TIMEOUT_MS = 3_000;

/** Null if no collector is configured; OpenTelemetry is then not even loaded. */
export async function openTracing(settings: Settings, log: Pick<Logger, "warn" | "info">): Promise<Tracing | null> {
  const hasEndpoint = settings.traceEndpoint !== null || settings.traceEndpointWhole !== null;
  if (!hasEndpoint || settings.tracesDisabled || settings.tracesExporter === "none") return null;
  const [api, { makeTracerProvider }] = await Promise.all([
    import("@opentelemetry/api"),
    import("./tracer-provider.ts"),
  ]);
  const provider = makeTracerProvider(settings, log);
  const tracer: Tracer = provider.getTracer("content-service");
  const current = new AsyncLocalStorage<Span>();
  const kinds: Readonly<Record<SpanOptions["kind"], SpanKind>> = {
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    internal: api.SpanKind.INTERNAL,
  };

  const contextOf = (origin: RemoteTraceContext | undefined): Context => {
    const parent = current.getStore();
    if (parent) return api.trace.setSpan(api.ROOT_CONTEXT, parent);
    const remote = readTraceparent(origin?.traceparent);
    if (!remote) return api.ROOT_CONTEXT;
    const traceState = api.createTraceState(origin?.tracestate);
    return api.trace.setSpanContext(api.ROOT_CONTEXT, { ...remote, traceState, isRemote: true });
  };

  const startSpan: Tracing["startSpan"] = (name, { kind, attributes = {}, remote }) =>
    tracer.startSpan(name, { kind: kinds[kind], attributes }, contextOf(remote));

  return {
    startSpan,
    withSpan: (span, work) => current.run(span, work),
    async traceWork(name, attributes, work) {
      const span = startSpan(name, { kind: "internal", attributes });
      try {
        return await current.run(span, work);
      } catch (error) {
        span.setStatus({ code: api.SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
    observe: observeStatements({ startSpan, isTraced: () => current.getStore()?.isRecording() ?? false }),
    async close() {
      const timeout = new Promise((resolve) => setTimeout(resolve, FLUSH_TIMEOUT_MS).unref());
      await Promise.race([provider.shutdown().catch(() => {}), timeout]);
    },
  };
}
