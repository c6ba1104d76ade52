/** Requests of one caller that are admitted per second while the event loop is this late. */
type SheddingLevel = { readonly latenessMs: number; readonly ofStranger: number; readonly ofKnown: number };

/** Strangers are refused first, callers with a key or a token of a user last. Who sends little is served as long as possible. */
const LEVELS: readonly SheddingLevel[] = [
  { latenessMs: 1500, ofStranger: 1, ofKnown: 20 },
  { latenessMs: 600, ofStranger: 2, ofKnown: Number.POSITIVE_INFINITY },
  { latenessMs: 250, ofStranger: 10, ofKnown: Number.POSITIVE_INFINITY },
];

const SAMPLE_MS = 50;
/** One block of the event loop is no overload: the mean follows within half a second. */
const MEMORY_MS = 500;
const WINDOW_MS = 1_000;

/** Refuses requests while the event loop is late, because of this process's work or because others use the processors. */
export class LoadShedder {
  readonly #clock: () => number;
  #lateness = 0;
  #sampledAt: number;
  #windowStartedAt: number;
  /** Admitted in this window while the loop is late. */
  readonly #admitted = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #users = 0;

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
    this.#sampledAt = this.#windowStartedAt = clock();
  }

  /** The mean of the last half second, in milliseconds. */
  get lateness(): number {
    return this.#lateness;
  }

  /** Returns what ends it. Several services of a process share it. */
  start(): () => void {
    if (this.#users++ === 0) {
      this.#sampledAt = this.#clock();
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
    const now = this.#clock();
    const elapsed = now - this.#sampledAt;
    this.#sampledAt = now;
    const late = Math.max(0, elapsed - SAMPLE_MS);
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
