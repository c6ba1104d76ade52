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
import type { Config } from "../config/config.ts";
import type { Logger } from "../log.ts";

/** Where spans are sent, and which. */
export type SendingSettings = Pick<
  Config,
  | "traceEndpoint"
  | "traceEndpointWhole"
  | "traceHeaders"
  | "tracesSampler"
  | "tracesSamplerRatio"
  | "traceServiceName"
  | "traceResource"
>;

/** Of an attribute, which SQL can make long. */
const MOST_CHARACTERS = 4_000;

/** Loaded where traces are wanted, and nowhere else. Spans are sent in the background; those that nobody takes are dropped. */
export function makeProvider(settings: SendingSettings, log: Pick<Logger, "warn" | "info">): BasicTracerProvider {
  const url = settings.traceEndpointWhole ?? `${settings.traceEndpoint}/v1/traces`;
  const exporter = new OTLPTraceExporter({ url, headers: { ...settings.traceHeaders } });
  return new BasicTracerProvider({
    resource: resourceFromAttributes({ ...settings.traceResource, "service.name": settings.traceServiceName }),
    sampler: samplerOf(settings),
    spanProcessors: [new BatchSpanProcessor(telling(exporter, url, log))],
    spanLimits: { attributeValueLengthLimit: MOST_CHARACTERS },
  });
}

function samplerOf({ tracesSampler, tracesSamplerRatio }: SendingSettings): Sampler {
  const kind = tracesSampler.replace("parentbased_", "");
  const root =
    kind === "always_off"
      ? new AlwaysOffSampler()
      : kind === "traceidratio"
        ? new TraceIdRatioBasedSampler(tracesSamplerRatio)
        : new AlwaysOnSampler();
  return tracesSampler === kind ? root : new ParentBasedSampler({ root });
}

/** That spans are lost is said once for as long as it is so. */
function telling(exporter: SpanExporter, url: string, log: Pick<Logger, "warn" | "info">): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const fails = result.error !== undefined;
        if (fails && !isFailing) log.warn({ err: result.error, url }, "traces cannot be sent, and are dropped");
        if (!fails && isFailing) log.info({ url }, "traces are sent again");
        isFailing = fails;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
