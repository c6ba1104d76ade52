import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { awaitedDelayBefore } from "../delay-before.ts";
import { databaseAway, outcomeUnknown, waitedTooLong } from "./faults.ts";
import { isFatal } from "./wire/decode.ts";

const MOST_CLIENTS = 4;
/** pg-pool's words when every client was busy for too long. */
const POOL_EXHAUSTED = "timeout exceeded when trying to connect";

export type OwnerOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly acquireTimeout: number;
};

/** Connections of the database's owner, for what no caller may do. */
export class OwnerPool {
  readonly #pool: pg.Pool;
  readonly #lost = new WeakSet<pg.PoolClient>();
  readonly #acquireTimeout: number;

  constructor({ url, applicationName, acquireTimeout }: OwnerOptions) {
    this.#acquireTimeout = acquireTimeout;
    this.#pool = new pg.Pool({
      connectionString: url,
      fallback_application_name: applicationName,
      max: MOST_CLIENTS,
      connectionTimeoutMillis: acquireTimeout,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
    });
    // An idle client was lost; the pool makes another one when it needs one.
    this.#pool.on("error", () => {});
    // From its first moment: the news of its end may come together with that of its beginning.
    this.#pool.on("connect", (client) => client.on("error", () => this.#lost.add(client)));
  }

  async lend<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#connect();
    try {
      return await work(client);
    } catch (error) {
      if (error instanceof pg.DatabaseError && isFatal(error)) this.#lost.add(client);
      throw this.#lost.has(client) ? outcomeUnknown(error) : error;
    } finally {
      // A client whose transaction was left open is closed, which rolls it back.
      client.release(this.#lost.has(client) || client.getTransactionStatus() !== "I");
    }
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  async #connect(): Promise<pg.PoolClient> {
    const deadline = performance.now() + this.#acquireTimeout;
    for (let attempt = 1; ; attempt++) {
      try {
        const client = await this.#pool.connect();
        if (!this.#lost.has(client)) return client;
        client.release(true);
        throw new Error("The connection was lost at once");
      } catch (error) {
        if ((error as Error).message === POOL_EXHAUSTED) throw waitedTooLong();
        const delay = awaitedDelayBefore(attempt);
        if (performance.now() + delay > deadline) throw databaseAway(error);
        await sleep(delay);
      }
    }
  }
}
