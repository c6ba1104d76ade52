import { setTimeout as sleep } from "node:timers/promises";
import { delayBefore } from "../delay-before.ts";

/** Opens connections. While that fails one caller tries again and again, and the others wait for how it ends. */
export class Connector<Connection> {
  readonly #connect: () => Promise<Connection>;
  readonly #onFailure: (error: Error) => void;
  #failures = 0;
  #trial: Promise<void> | null = null;
  readonly #closed = new AbortController();

  constructor(connect: () => Promise<Connection>, onFailure: (error: Error) => void) {
    this.#connect = connect;
    this.#onFailure = onFailure;
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
      const connection = await this.#connect();
      this.#failures = 0;
      return connection;
    } catch (error) {
      this.#failures = failures;
      this.#onFailure(error as Error);
      return null;
    }
  }

  async #pause(): Promise<void> {
    await sleep(delayBefore(this.#failures), undefined, { signal: this.#closed.signal }).catch(() => {});
  }
}
