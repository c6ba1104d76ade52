import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { Source } from "./metric.ts";

/** The metrics of one process. */
export type Measured = readonly object[];

export const EXPOSITION_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** Asks each source when somebody wants to know, and Node about its memory, its event loop and its garbage. */
export function makeMeter(sources: readonly Source[]): () => Promise<Measured> {
  const ofNode = new Registry();
  collectDefaultMetrics({ register: ofNode });
  return async () => {
    const [known, ...told] = await Promise.all([ofNode.getMetricsAsJSON(), ...sources.map((source) => source())]);
    return [...known, ...told.flat()];
  };
}

/** As Prometheus reads it, all processes together. */
export function toExposition(processes: readonly Measured[]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics();
}
