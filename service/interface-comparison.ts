import { once } from "node:events";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Config } from "#config";
import type { CompareInterfaces, InterfaceComparison } from "#operations/contract";

const PROGRAM = join(import.meta.dirname, `comparison-thread${extname(import.meta.filename)}`);

export type ComparisonSource = { readonly config: Config; readonly requestUrl: string };

/** In a thread: the GraphQL schemas of a thousand tables would hold the event loop for seconds. */
export function makeInterfaceComparer(source: ComparisonSource): CompareInterfaces {
  return async ({ beforeUrl, afterUrl, signal }, migrate) => {
    const worker = new Worker(PROGRAM, { name: "interface comparison", workerData: source });
    const failure = Promise.withResolvers<never>();
    failure.promise.catch(() => {});
    worker.on("error", failure.reject);
    signal.addEventListener("abort", () => failure.reject(signal.reason), { once: true });
    const send = async (url: string) => {
      worker.postMessage(url);
      const [response] = await Promise.race([failure.promise, once(worker, "message")]);
      return response;
    };
    try {
      await send(beforeUrl);
      await migrate();
      return (await send(afterUrl)) as InterfaceComparison;
    } finally {
      await worker.terminate();
    }
  };
}
