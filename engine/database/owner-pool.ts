import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { awaitedRetryDelay } from "../concurrency/retry-delay.ts";
import type { Logger } from "../output/log.ts";
import { acquireTimeout, databaseUnreachable, outcomeUnknown } from "./database-errors.ts";
import { isFatal } from "./message-decoder.ts";

/** Postgres has no such function, or no such schema: a database that is not ours. */
const UNDEFINED_FUNCTION_CODES: readonly (string | undefined)[] = ["42883", "3F000"];
const INSUFFICIENT_PRIVILEGE = "42501";

const MAX_CLIENTS = 4;
/** pg-pool's words when every client was busy for too long. */
const POOL_EXHAUSTED_MESSAGE = "timeout exceeded when trying to connect";

type OwnerPoolOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly acquireTimeout: number;
};

/** Connections of the database's owner, for what no caller may do. */
export class OwnerPool {
  readonly #pool: pg.Pool;
  readonly #lost = new WeakSet<pg.PoolClient>();
  readonly #acquireTimeout: number;

  constructor({ url, applicationName, acquireTimeout }: OwnerPoolOptions) {
    this.#acquireTimeout = acquireTimeout;
    this.#pool = new pg.Pool({
      connectionString: url,
      fallback_application_name: applicationName,
      max: MAX_CLIENTS,
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
        if ((error as Error).message === POOL_EXHAUSTED_MESSAGE) throw acquireTimeout();
        const delay = awaitedRetryDelay(attempt);
        if (performance.now() + delay > deadline) throw databaseUnreachable(error);
        await sleep(delay);
      }
    }
  }
}

/** Lends a connection of the database's owner, for what no caller may do. */
export type AsOwner = <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>;

/**
 * Done whole or not at all. Read committed, whatever the database's default is: a statement that has waited for an
 * account is to see what it waited for.
 */
export function inOwnerTransaction<T>(asOwner: AsOwner, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  return asOwner(async (client) => {
    await client.query("begin isolation level read committed");
    try {
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      // Where the connection was lost, Postgres has rolled back by itself.
      await client.query("rollback").catch(() => {});
      throw error;
    }
  });
}

type OwnerFunctionOptions = {
  readonly asOwner: AsOwner;
  readonly text: string;
  readonly log: Pick<Logger, "warn">;
  /** Said once where the one who is asked as the owner is not the owner. */
  readonly warning: string;
};

/** Asks a function of ours. Where there is none, or it cannot be called, nothing is known. */
export function makeOwnerFunction<Row extends pg.QueryResultRow>({
  asOwner,
  text,
  log,
  warning,
}: OwnerFunctionOptions) {
  let hasWarned = false;
  const onRefusal = (error: unknown): Row[] => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (UNDEFINED_FUNCTION_CODES.includes(code)) return [];
    if (code !== INSUFFICIENT_PRIVILEGE) throw error;
    if (!hasWarned) log.warn(warning);
    hasWarned = true;
    return [];
  };
  return (values: readonly unknown[]): Promise<Row[]> =>
    asOwner((client) => client.query<Row>(text, [...values])).then(({ rows }) => rows, onRefusal);
}
