import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "#runtime";
import { FairWorkQueue } from "#runtime/concurrency";

const CONCURRENCY = 8;
/** So long may runs follow each other without pauses. */
const BURST_MS = 1_000;
/** Of the run before it. */
const PAUSE_FACTOR = 3;
const LONGEST_PAUSE_MS = 1_000;
/** A statement can fail once because its definitions are being changed. */
const MAX_FAILURES = 2;

/**
 * The runs of queries after commits. Their callers take turns, so that one with many queries delays only itself. Where commits ask for more runs
 * than there is time for, pauses leave the database and the event loop to requests that want them: results are then older, and none is left out.
 */
export class RerunQueue {
  readonly #queue = new FairWorkQueue(CONCURRENCY);
  readonly #countStatements: () => number;
  #running = 0;
  #unfinished = 0;
  #busySince = 0;

  /** `countStatements`: those that run in the database or wait for it, these runs among them. */
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

/** Whether a run that has failed so often is repeated. What the caller may not read any more leaves at once. */
export function mayRunAgain(error: unknown, failures: number): boolean {
  if (!(error instanceof ApiError)) return failures < MAX_FAILURES;
  const { kind, code } = error;
  if (kind === "unavailable" || kind === "timeout") return true;
  const isFinal = kind === "forbidden" || kind === "unauthenticated" || code === "NOT_LIVE";
  return !isFinal && failures < MAX_FAILURES;
}
