import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { MetricSource } from "./metric.ts";

/** The metrics of one process, as prom-client's JSON. */
export type ProcessMetrics = readonly object[];

export const EXPOSITION_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Reads the metrics of all sources and Node's default metrics (memory, event loop, garbage collection). */
export function makeMetricsReader(sources: readonly MetricSource[]): () => Promise<ProcessMetrics> {
  const nodeRegistry = new Registry();
  collectDefaultMetrics({ register: nodeRegistry });
  return async () => {
    const [defaults, ...metrics] = await Promise.all([
      nodeRegistry.getMetricsAsJSON(),
      ...sources.map((source) => source()),
    ]);
    return [...defaults, ...metrics.flat()];
  };
}

/** Prometheus's text format, aggregated over all processes. */
export function formatExposition(processes: readonly ProcessMetrics[]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics();
}
