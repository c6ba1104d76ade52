import { once } from "node:events";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Config } from "#config";
import type { CompareInterfaces, InterfaceComparison, RecordedRequest } from "#operations/contract";

const PROGRAM = join(import.meta.dirname, `comparison-thread${extname(import.meta.filename)}`);

/** The interfaces of the database of a URL, and the requests that it is checked with. */
export type InterfaceReading = { readonly url: string; readonly requests: readonly RecordedRequest[] | null };

export type ComparisonSource = { readonly config: Config; readonly requestUrl: string };

/** Compares in a thread: the GraphQL schemas of a thousand tables would block the event loop for seconds. */
export function makeInterfaceComparer(source: ComparisonSource): CompareInterfaces {
  return async ({ beforeUrl, afterUrl, requests, signal }, migrate) => {
    const worker = new Worker(PROGRAM, { name: "interface comparison", workerData: source });
    const failure = Promise.withResolvers<never>();
    failure.promise.catch(() => {});
    worker.on("error", failure.reject);
    signal.addEventListener("abort", () => failure.reject(signal.reason), { once: true });
    const send = async (reading: InterfaceReading) => {
      worker.postMessage(reading);
      const [response] = await Promise.race([failure.promise, once(worker, "message")]);
      return response;
    };
    try {
      await send({ url: beforeUrl, requests: null });
      await migrate();
      return (await send({ url: afterUrl, requests })) as InterfaceComparison;
    } finally {
      await worker.terminate();
    }
  };
}
