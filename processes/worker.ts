import { makeLogger } from "../engine/output/log.ts";
import type { DrainMode } from "../rest-gateway/http/drain.ts";
import { type Service, startService } from "../service.ts";
import { CLOSE_TIMEOUT_MS, exitAfter, keepYoungGenerationMemory, reportFailure } from "./process-lifecycle.ts";
import type { WorkerMessage, WorkerReport } from "./worker-cluster.ts";

keepYoungGenerationMemory();
let service: Service | null = null;
let drainTimeout = 0;
let isStopping = false;
let missingWorkers: string | null = null;

process.on("message", (message: WorkerMessage) => {
  switch (message.kind) {
    case "serve":
      void serve(message);
      break;
    case "shortage":
      missingWorkers = message.fault;
      break;
    case "query":
      void answerQuery(message);
      break;
    case "stop":
      void stop(message.departure);
  }
});
// Ctrl-C reaches all processes of the terminal; the primary tells the workers when to stop.
process.on("SIGINT", () => {});
// Handled by the primary. The default action would end this process with its open requests.
process.on("SIGUSR2", () => {});
process.on("SIGTERM", () => void stop({ othersStay: true }));

async function serve({ worker, config, postgres, schemaPatienceMs }: WorkerMessage & { kind: "serve" }): Promise<void> {
  drainTimeout = config.drainTimeout;
  const log = makeLogger(config, { worker });
  try {
    service = await startService(config, {
      log,
      report: (step) => log.info(step),
      onFatalError: reportFailure,
      postgres: { ...postgres, close: async () => {} },
      workerShortage: () => missingWorkers,
      ...(schemaPatienceMs !== undefined && { schemaTimeoutMs: schemaPatienceMs }),
    });
    report({ kind: "serving", url: service.url });
  } catch (error) {
    reportFailure(error);
    process.exit();
  }
}

async function answerQuery({ id, name }: WorkerMessage & { kind: "query" }): Promise<void> {
  const result = await service?.operations[name]().catch(() => undefined);
  report({ kind: "reply", id, answer: result });
}

/** An error is ignored: the primary may have exited. */
function report(message: WorkerReport): void {
  process.send!(message, undefined, undefined, () => {});
}

async function stop(departure: DrainMode): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  if (!service) process.exit();
  exitAfter(drainTimeout * 1000 + CLOSE_TIMEOUT_MS);
  await service.stop(departure).catch(reportFailure);
  process.exit();
}
