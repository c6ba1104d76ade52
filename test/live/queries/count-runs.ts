import type { Service } from "../../../service/wiring/service.ts";

type MeasuredService = Pick<Service, "operations">;

/** Returns the number of times that live queries of the service ran after commits. It needs `ADMIN_PORT`. */
export function countRuns(service: MeasuredService): Promise<number> {
  return readMetric(service, "content_service_live_runs_total");
}

/** Returns the number of results that the live queries of the service share. It needs `ADMIN_PORT`. */
export function countResults(service: MeasuredService): Promise<number> {
  return readMetric(service, "content_service_live_results");
}

async function readMetric({ operations }: MeasuredService, wanted: string): Promise<number> {
  const metrics = (await operations.measure()).flat() as unknown as {
    readonly name: string;
    readonly values: readonly { readonly value: number }[];
  }[];
  return metrics.find(({ name }) => name === wanted)!.values[0]!.value;
}
