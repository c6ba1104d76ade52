import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "#runtime";
import { FairWorkQueue } from "#runtime/concurrency";

const CONCURRENCY = 8;
/** The time for which runs may follow each other without pauses. */
const BURST_MS = 1_000;
/** The length of a pause, as a multiple of the run before it. */
const PAUSE_FACTOR = 3;
const LONGEST_PAUSE_MS = 1_000;
/** A statement can fail once because its definitions are being changed. */
const MAX_FAILURES = 2;

/**
 * Runs queries again after commits. Callers take turns, so that one with many queries delays only itself. If commits ask for more runs
 * than there is time for, pauses leave the database and the event loop to other requests: results are then older, but none is left out.
 */
export class RerunQueue {
  readonly #queue = new FairWorkQueue(CONCURRENCY);
  readonly #countStatements: () => number;
  #running = 0;
  #unfinished = 0;
  #busySince = 0;

  /** `countStatements`: the number of statements that run in the database or wait for it, these runs included. */
  constructor(countStatements: () => number) {
    this.#countStatements = countStatements;
  }

  run<Result>(caller: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#unfinished++ === 0) this.#busySince = performance.now();
    return new Promise((resolve, reject) => {
      void this.#queue.run(caller, async () => {
        const startedAt = performance.now();
        this.#running++;
        await work().then(resolve, reject);
        this.#running--;
        this.#unfinished--;
        const now = performance.now();
        const isBacklog = this.#unfinished > 0 && now - this.#busySince > BURST_MS;
        if (isBacklog && this.#countStatements() > this.#running)
          await sleep(Math.min(PAUSE_FACTOR * (now - startedAt), LONGEST_PAUSE_MS));
      });
    });
  }
}

/** True if a run that has failed this often is repeated. Errors of privileges are final, so lost privileges take effect at once. */
export function mayRunAgain(error: unknown, failures: number): boolean {
  if (!(error instanceof ApiError)) return failures < MAX_FAILURES;
  const { kind, code } = error;
  if (kind === "unavailable" || kind === "timeout") return true;
  const isFinal = kind === "forbidden" || kind === "unauthenticated" || code === "NOT_LIVE";
  return !isFinal && failures < MAX_FAILURES;
}
