import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, Context, Span, SpanKind, Tracer } from "@opentelemetry/api";
import type { Config } from "../config/config.ts";
import type { Observe } from "../database/observe.ts";
import type { Logger } from "../log.ts";
import type { SendingSettings } from "./provider.ts";
import { observeStatements } from "./statement-spans.ts";
import { readTraceparent } from "./traceparent.ts";

export type { Span } from "@opentelemetry/api";

/** Where a trace goes on that somebody else has begun: the headers of W3C Trace Context. */
export type Origin = { readonly traceparent?: string | undefined; readonly tracestate?: string | undefined };

type Beginning = { readonly kind: "server" | "client" | "internal"; readonly attributes?: Attributes };

export type Tracing = {
  /** A span of its own, or one of the trace that its origin names; whoever begins it ends it. */
  begin(name: string, beginning: Beginning & { readonly origin?: Origin }): Span;
  /** What begins in the course of the work is a part of it. */
  within<T>(span: Span, work: () => T): T;
  /** A span around the work. */
  around<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** A span for each statement that is asked in the course of one. */
  readonly observe: Observe;
  /** Sends what has not been sent yet. */
  close(): Promise<void>;
};

type Settings = SendingSettings & Pick<Config, "tracesDisabled" | "tracesExporter">;

/** How long the last spans may take to be sent. */
const FAREWELL_MS = 3_000;

/** Null where nobody collects traces: then nothing of OpenTelemetry is even loaded. */
export async function openTracing(settings: Settings, log: Pick<Logger, "warn" | "info">): Promise<Tracing | null> {
  const isWanted = settings.traceEndpoint !== null || settings.traceEndpointWhole !== null;
  if (!isWanted || settings.tracesDisabled || settings.tracesExporter === "none") return null;
  const [api, { makeProvider }] = await Promise.all([import("@opentelemetry/api"), import("./provider.ts")]);
  const provider = makeProvider(settings, log);
  const tracer: Tracer = provider.getTracer("content-service");
  const current = new AsyncLocalStorage<Span>();
  const kinds: Readonly<Record<Beginning["kind"], SpanKind>> = {
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    internal: api.SpanKind.INTERNAL,
  };

  const contextOf = (origin: Origin | undefined): Context => {
    const inside = current.getStore();
    if (inside) return api.trace.setSpan(api.ROOT_CONTEXT, inside);
    const remote = readTraceparent(origin?.traceparent);
    if (!remote) return api.ROOT_CONTEXT;
    const traceState = api.createTraceState(origin?.tracestate);
    return api.trace.setSpanContext(api.ROOT_CONTEXT, { ...remote, traceState, isRemote: true });
  };

  const begin: Tracing["begin"] = (name, { kind, attributes = {}, origin }) =>
    tracer.startSpan(name, { kind: kinds[kind], attributes }, contextOf(origin));

  return {
    begin,
    within: (span, work) => current.run(span, work),
    async around(name, attributes, work) {
      const span = begin(name, { kind: "internal", attributes });
      try {
        return await current.run(span, work);
      } catch (error) {
        span.setStatus({ code: api.SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
    observe: observeStatements({ begin, isTraced: () => current.getStore()?.isRecording() ?? false }),
    async close() {
      const patience = new Promise((resolve) => setTimeout(resolve, FAREWELL_MS).unref());
      await Promise.race([provider.shutdown().catch(() => {}), patience]);
    },
  };
}
