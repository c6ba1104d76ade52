import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import type { Config } from "#config";
import type { WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";

/** The settings that select the receiver of spans, and the sampled spans. */
export type TraceExportSettings = Pick<
  Config,
  | "traceEndpoint"
  | "traceEndpointWhole"
  | "traceHeaders"
  | "tracesSampler"
  | "tracesSamplerRatio"
  | "traceServiceName"
  | "traceResource"
>;

/** SQL texts can make attributes long. */
const MAX_ATTRIBUTE_LENGTH = 4_000;

/**
 * The provider is imported dynamically, only if tracing is configured. Spans are sent in the background, and dropped if the
 * collector is unavailable.
 */
export function makeTracerProvider(
  settings: TraceExportSettings,
  log: Pick<Logger, "warn" | "info">,
  report?: WorkReport,
): BasicTracerProvider {
  const url = settings.traceEndpointWhole ?? `${settings.traceEndpoint}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, headers: { ...settings.traceHeaders } });
  return new BasicTracerProvider({
    resource: resourceFromAttributes({ ...settings.traceResource, "service.name": settings.traceServiceName }),
    sampler: samplerOf(settings),
    spanProcessors: [
      new BatchSpanProcessor(logExportFailures(report ? belongTo(exporter, report) : exporter, url, log)),
    ],
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_LENGTH },
  });
}

function samplerOf({ tracesSampler, tracesSamplerRatio }: TraceExportSettings): Sampler {
  const kind = tracesSampler.replace("parentbased_", "");
  const root =
    kind === "always_off"
      ? new AlwaysOffSampler()
      : kind === "traceidratio"
        ? new TraceIdRatioBasedSampler(tracesSamplerRatio)
        : new AlwaysOnSampler();
  return tracesSampler === kind ? root : new ParentBasedSampler({ root });
}

/** The exporter counts an export that has an uncaught error as failed after its timeout. */
function belongTo(exporter: SpanExporter, report: WorkReport): SpanExporter {
  return {
    export: (spans, done) => report.run(() => exporter.export(spans, done)),
    shutdown: () => exporter.shutdown().finally(() => report.close()),
  };
}

/** Logs the first failure and the recovery, not each failed export. */
function logExportFailures(exporter: SpanExporter, url: string, log: Pick<Logger, "warn" | "info">): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const fails = result.error !== undefined;
        if (fails && !isFailing) log.warn({ err: result.error, url }, "traces cannot be sent and are dropped");
        if (!fails && isFailing) log.info({ url }, "traces are sent again");
        isFailing = fails;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
