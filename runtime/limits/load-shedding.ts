import { availableParallelism } from "node:os";

/** The number of requests of one caller that are admitted per second while the event loop is this late. */
type SheddingLevel = { readonly latenessMs: number; readonly ofStranger: number; readonly ofKnown: number };

/**
 * Anonymous callers are refused first, callers with a key or a user's token last. A caller that sends few requests is served
 * as long as possible.
 */
const LEVELS: readonly SheddingLevel[] = [
  { latenessMs: 1500, ofStranger: 1, ofKnown: 20 },
  { latenessMs: 600, ofStranger: 2, ofKnown: Number.POSITIVE_INFINITY },
  { latenessMs: 250, ofStranger: 10, ofKnown: Number.POSITIVE_INFINITY },
];

const SAMPLE_MS = 50;
/** The mean follows within half a second, because one block of the event loop is no overload. */
const MEMORY_MS = 500;
const WINDOW_MS = 1_000;

/** The clocks of the event loop, in milliseconds. */
type LoopClocks = {
  readonly wall: () => number;
  /** The processor time of this process that delays the event loop. */
  readonly processor: () => number;
};

const PROCESSORS = availableParallelism();

/** The other threads of the process (hashing, functions, garbage collection) delay the event loop by their part of all processors. */
function processorTime(): number {
  const loop = threadTime(process.threadCpuUsage());
  return loop + (threadTime(process.cpuUsage()) - loop) / PROCESSORS;
}

function threadTime({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}

const PROCESS_CLOCKS: LoopClocks = { wall: () => performance.now(), processor: processorTime };

/**
 * Refuses requests while this process's work makes the event loop late. A delay in which other processes had the processors,
 * or the process was stopped, is not its load: refusing requests would not end it.
 */
export class LoadShedder {
  readonly #clocks: LoopClocks;
  #lateness = 0;
  #sampledAt: number;
  #workedUntil: number;
  #windowStartedAt: number;
  /** The numbers of requests that were admitted in this window while the loop is late. */
  readonly #admitted = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #users = 0;

  constructor(clocks: LoopClocks = PROCESS_CLOCKS) {
    this.#clocks = clocks;
    this.#sampledAt = this.#windowStartedAt = clocks.wall();
    this.#workedUntil = clocks.processor();
  }

  /** The mean of the last half second, in milliseconds. */
  get lateness(): number {
    return this.#lateness;
  }

  /** Starts sampling, and returns a function that ends it. Several services of a process share it. */
  start(): () => void {
    if (this.#users++ === 0) {
      this.#sampledAt = this.#clocks.wall();
      this.#workedUntil = this.#clocks.processor();
      this.#timer = setInterval(() => this.sample(), SAMPLE_MS).unref();
    }
    return () => {
      if (--this.#users > 0) return;
      clearInterval(this.#timer);
      this.#lateness = 0;
    };
  }

  /** Called every 50 ms, or as soon as the event loop gets to it. */
  sample(): void {
    const now = this.#clocks.wall();
    const elapsed = now - this.#sampledAt;
    this.#sampledAt = now;
    const worked = this.#clocks.processor();
    const late = Math.min(Math.max(0, elapsed - SAMPLE_MS), worked - this.#workedUntil);
    this.#workedUntil = worked;
    this.#lateness += (late - this.#lateness) * (1 - Math.exp(-elapsed / MEMORY_MS));
    if (now - this.#windowStartedAt < WINDOW_MS) return;
    this.#windowStartedAt = now;
    this.#admitted.clear();
  }

  admits(caller: string, isStranger: boolean): boolean {
    const level = LEVELS.find(({ latenessMs }) => this.#lateness >= latenessMs);
    if (!level) return true;
    const admitted = this.#admitted.get(caller) ?? 0;
    if (admitted >= (isStranger ? level.ofStranger : level.ofKnown)) return false;
    this.#admitted.set(caller, admitted + 1);
    return true;
  }
}
