import type { Service } from "../../../service/wiring/service.ts";

/** Returns the number of times that live queries of the service ran after commits. It needs `ADMIN_PORT`. */
export async function countRuns({ operations }: Pick<Service, "operations">): Promise<number> {
  const metrics = (await operations.measure()).flat() as unknown as {
    readonly name: string;
    readonly values: readonly { readonly value: number }[];
  }[];
  return metrics.find(({ name }) => name === "content_service_live_runs_total")!.values[0]!.value;
}
