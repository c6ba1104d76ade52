import { setTimeout as sleep } from "node:timers/promises";
import { awaitedDelayBefore, delayBefore } from "../delay-before.ts";

type ConnectorOptions<Connection> = {
  readonly connect: () => Promise<Connection>;
  readonly onFailure: (error: Error) => void;
  /** Whether a request waits for a connection: then the next attempt comes sooner. */
  readonly isAwaited: () => boolean;
};

/** Opens connections. While that fails one caller tries again and again, and the others wait for how it ends. */
export class Connector<Connection> {
  readonly #options: ConnectorOptions<Connection>;
  #failures = 0;
  #trial: Promise<void> | null = null;
  readonly #closed = new AbortController();

  constructor(options: ConnectorOptions<Connection>) {
    this.#options = options;
  }

  /** Never rejects: resolves with null when the connection is no longer wanted. */
  async open(isWanted: () => boolean): Promise<Connection | null> {
    for (;;) {
      while (this.#trial) await this.#trial;
      if (this.#closed.signal.aborted) return null;
      if (this.#failures > 0 && !isWanted()) return null;
      if (this.#failures === 0) {
        const connection = await this.#attempt();
        if (connection) return connection;
      } else {
        const trial = Promise.withResolvers<void>();
        this.#trial = trial.promise;
        await this.#pause();
        const connection = await this.#attempt();
        this.#trial = null;
        trial.resolve();
        if (connection) return connection;
      }
    }
  }

  close(): void {
    this.#closed.abort();
  }

  async #attempt(): Promise<Connection | null> {
    // Those who fail at the same time count as one.
    const failures = this.#failures + 1;
    try {
      const connection = await this.#options.connect();
      this.#failures = 0;
      return connection;
    } catch (error) {
      this.#failures = failures;
      this.#options.onFailure(error as Error);
      return null;
    }
  }

  /** In steps, as a request may come while nobody has waited yet. */
  async #pause(): Promise<void> {
    const { signal } = this.#closed;
    const end = performance.now() + delayBefore(this.#failures);
    for (let left = end - performance.now(); left > 0 && !signal.aborted; left = end - performance.now()) {
      await sleep(Math.min(left, awaitedDelayBefore(this.#failures)), undefined, { signal }).catch(() => {});
      if (this.#options.isAwaited()) return;
    }
  }
}
