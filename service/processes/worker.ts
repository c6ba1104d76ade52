import type { WalArchiveState } from "#cluster/wal-archive";
import type { SharedActivity } from "#http/observability";
import type { DrainMode, WorkersState } from "#http/serving";
import { setPackageProgram } from "#runtime";
import type { HandlePeerMessage, PeerTopic, PeerWorkers } from "#runtime/concurrency";
import { makeLogger } from "#runtime/log";
import { type Service, startService } from "../wiring/service.ts";
import { CLOSE_TIMEOUT_MS, exitAfter, handleUncaughtErrors, reportFailure } from "./process-lifecycle.ts";
import type { WorkerMessage, WorkerReport } from "./worker-messages.ts";
import { growYoungGeneration } from "./young-generation.ts";

let service: Service | null = null;
let drainTimeout = 0;
let isStopping = false;
let workers: WorkersState = { serving: 1, fault: null };
let walArchive: WalArchiveState | null = null;

/** Messages to and from the other workers, through the primary. */
const peerHandlers = new Map<PeerTopic, HandlePeerMessage>();
const exitHandlers: ((worker: number) => void)[] = [];
const unpublished = new Map<number, () => void>();
let nextMessageId = 0;
const peers: PeerWorkers = {
  publish(topic, content) {
    const id = nextMessageId++;
    const { promise, resolve } = Promise.withResolvers<void>();
    unpublished.set(id, resolve);
    report({ kind: "publish", id, topic, content });
    return promise;
  },
  subscribe: (topic, handle) => void peerHandlers.set(topic, handle),
  onExit: (handle) => void exitHandlers.push(handle),
};

/** Events and answers that reach all workers through the primary. */
const allAreReadyToClose = Promise.withResolvers<void>();
const noConnectionsCome = Promise.withResolvers<void>();
const unanswered = new Map<number, (answers: readonly never[]) => void>();
const queryAll =
  (name: keyof SharedActivity) =>
  <T>(): Promise<readonly T[]> => {
    const id = nextMessageId++;
    report({ kind: "query all", id, name });
    return new Promise((resolve) => unanswered.set(id, resolve));
  };
const everywhere: SharedActivity = {
  activity: queryAll("activity"),
  recentEmails: queryAll("recentEmails"),
  recentRequests: queryAll("recentRequests"),
  functionLines: queryAll("functionLines"),
};

process.on("message", (message: WorkerMessage) => {
  switch (message.kind) {
    case "serve":
      void serve(message);
      break;
    case "workers":
      workers = message.state;
      break;
    case "wal archive":
      walArchive = message.state;
      break;
    case "query":
      void answerQuery(message);
      break;
    case "peer":
      peerHandlers.get(message.topic)?.(message.content, message.sender);
      report({ kind: "reply", id: message.id, answer: true });
      break;
    case "peer exit":
      for (const handle of exitHandlers) handle(message.worker);
      break;
    case "published":
      unpublished.get(message.id)?.();
      unpublished.delete(message.id);
      break;
    case "answers":
      unanswered.get(message.id)?.(message.answers as readonly never[]);
      unanswered.delete(message.id);
      break;
    case "stop":
      void stop({ ...message.departure, beforeClosing: untilNoConnectionsCome });
      break;
    case "hold requests":
      allAreReadyToClose.resolve();
      break;
    case "close server":
      noConnectionsCome.resolve();
  }
});
handleUncaughtErrors();
// Ctrl-C reaches all processes of the terminal; the primary tells the workers when to stop.
process.on("SIGINT", () => {});
// The primary handles this signal. The default action would end this process with its open requests.
process.on("SIGUSR2", () => {});
process.on("SIGTERM", () => void stop({ othersStay: true }));

async function serve(message: WorkerMessage & { kind: "serve" }): Promise<void> {
  const { worker, config, postgres, schemaPatienceMs } = message;
  setPackageProgram(message.packageProgram);
  drainTimeout = config.drainTimeout;
  walArchive ??= message.walArchive;
  const log = makeLogger(config, { worker });
  try {
    service = await startService(config, {
      log,
      report: (step) => report({ kind: "step", step }),
      onFatalError: reportFailure,
      onGraphqlLoad: () => report({ kind: "graphql loaded" }),
      postgres: { ...postgres, close: async () => {} },
      workers: () => workers,
      walArchive: () => walArchive,
      peers,
      everywhere,
      ...(schemaPatienceMs !== undefined && { schemaWaitMs: schemaPatienceMs }),
    });
    growYoungGeneration();
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

/** Reports to the primary. An error is ignored: the primary may have exited. */
function report(message: WorkerReport): void {
  process.send!(message, undefined, undefined, () => {});
}

async function untilNoConnectionsCome(holdRequests: () => void): Promise<void> {
  report({ kind: "ready to close" });
  await allAreReadyToClose.promise;
  holdRequests();
  return noConnectionsCome.promise;
}

async function stop(departure: DrainMode): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  if (!service) process.exit();
  exitAfter(drainTimeout * 1000 + CLOSE_TIMEOUT_MS);
  await service.stop(departure).catch(reportFailure);
  await reportLastMetrics(service);
  process.exit();
}

/** Reports the final counters; the primary keeps them. */
async function reportLastMetrics({ operations }: Service): Promise<void> {
  const measured = await operations.measure().catch(() => []);
  if (measured.length === 0) return;
  await new Promise<void>((resolve) => {
    const message: WorkerReport = { kind: "last metrics", metrics: measured.flat() };
    process.send!(message, undefined, undefined, () => resolve());
  });
}
