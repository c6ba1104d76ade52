import { AsyncLocalStorage } from "node:async_hooks";
import type { Attributes, Context, Span, SpanContext, SpanKind, Tracer } from "@opentelemetry/api";
import type { Config } from "#config";
import { joinStatementTexts, type StatementObserver } from "#postgres/database";
import type { Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { TraceExportSettings } from "./tracer-provider.ts";

/** The header of W3C Trace Context: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. Later versions may append fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** `SpanStatusCode.ERROR`, without loading OpenTelemetry. */
const ERROR_STATUS = 2;
const IGNORE_RESULT = (): void => {};

export type { Span } from "@opentelemetry/api";

/** The trace of the client, in the fields of W3C Trace Context. */
type RemoteTraceContext = {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
};

type SpanOptions = { readonly kind: "server" | "client" | "internal"; readonly attributes?: Attributes };

export type Tracing = {
  /** Starts a span under the current one, or in the remote trace. The caller ends it. */
  startSpan(name: string, options: SpanOptions & { readonly remote?: RemoteTraceContext }): Span;
  /** Runs the work with this span as the parent of the spans that it starts. */
  withSpan<T>(span: Span, work: () => T): T;
  /** Runs the work in a new span. */
  traceWork<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** Records a span for each SQL statement that runs inside a span. */
  readonly observe: StatementObserver;
  /** Sends the remaining spans. */
  close(): Promise<void>;
};

type TracingSettings = TraceExportSettings & Pick<Config, "tracesDisabled" | "tracesExporter">;

/** The time limit for sending the last spans. */
const FLUSH_TIMEOUT_MS = 3_000;

/** Returns null if no collector is configured; OpenTelemetry is then not even loaded. */
export async function openTracing(
  settings: TracingSettings,
  log: Pick<Logger, "warn" | "info">,
  supervisor?: Supervisor,
): Promise<Tracing | null> {
  const hasEndpoint = settings.traceEndpoint !== null || settings.traceEndpointWhole !== null;
  if (!hasEndpoint || settings.tracesDisabled || settings.tracesExporter === "none") return null;
  const [api, { makeTracerProvider }] = await Promise.all([
    import("@opentelemetry/api"),
    import("./tracer-provider.ts"),
  ]);
  const provider = makeTracerProvider(settings, log, supervisor?.report("traces"));
  const tracer: Tracer = provider.getTracer("content-service");
  const current = new AsyncLocalStorage<Span>();
  const kinds: Readonly<Record<SpanOptions["kind"], SpanKind>> = {
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    internal: api.SpanKind.INTERNAL,
  };

  const startSpan: Tracing["startSpan"] = (name, { kind, attributes = {}, remote }) =>
    tracer.startSpan(name, { kind: kinds[kind], attributes }, parentContext(api, current.getStore(), remote));

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

type OpenTelemetryApi = typeof import("@opentelemetry/api");

/** Returns the parent of a new span: the current span, or else the client's. */
function parentContext(
  api: OpenTelemetryApi,
  current: Span | undefined,
  client: RemoteTraceContext | undefined,
): Context {
  if (current) return api.trace.setSpan(api.ROOT_CONTEXT, current);
  const remote = readTraceparent(client?.traceparent);
  if (!remote) return api.ROOT_CONTEXT;
  const traceState = api.createTraceState(client?.tracestate);
  return api.trace.setSpanContext(api.ROOT_CONTEXT, { ...remote, traceState, isRemote: true });
}

/** Returns null for an invalid header, which W3C Trace Context requires to ignore. */
export function readTraceparent(
  text: string | undefined,
): Pick<SpanContext, "traceId" | "spanId" | "traceFlags"> | null {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined)) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags!, 16) & 1 };
}

type StatementSpansOptions = { readonly startSpan: Tracing["startSpan"]; readonly isTraced: () => boolean };

/** Records each statement as a span, by OpenTelemetry's semantic conventions for databases; without parameter values. */
function observeStatements({ startSpan, isTraced }: StatementSpansOptions): StatementObserver {
  return ({ role }, texts) => {
    if (!isTraced()) return IGNORE_RESULT;
    const text = joinStatementTexts(texts);
    const operation = /\w+/.exec(text)?.[0].toUpperCase() ?? "SQL";
    const startedAt = performance.now();
    const span = startSpan(operation, {
      kind: "client",
      attributes: { "db.system.name": "postgresql", "db.query.text": text, "postgresql.role": role },
    });
    return ({ error, milliseconds, rows, bytes, pid }) => {
      span.setAttributes({
        "db.response.returned_rows": rows,
        "db.response.returned_bytes": bytes,
        "postgresql.wait_ms": Math.max(0, performance.now() - startedAt - milliseconds),
        "postgresql.execute_ms": milliseconds,
        ...(pid !== null && { "postgresql.pid": pid }),
      });
      if (error !== null) {
        const code = (error as { readonly code?: unknown }).code;
        const kind = typeof code === "string" ? code : ((error as Error).name ?? "Error");
        span.setAttributes({
          "error.type": kind,
          ...(typeof code === "string" && { "db.response.status_code": code }),
        });
        span.setStatus({ code: ERROR_STATUS });
      }
      span.end();
    };
  };
}
