import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { awaitedRetryDelay } from "../concurrency/retry-delay.ts";
import type { Logger } from "../output/log.ts";
import { findServer } from "../pg-client/server-finder.ts";
import { isFatal } from "../pg-client/server-messages.ts";
import { acquireTimeout, databaseUnreachable, outcomeUnknown } from "./database-errors.ts";

/** SQLSTATE undefined_function and invalid_schema_name: the database has no schema of this service. */
const UNDEFINED_FUNCTION_CODES: readonly (string | undefined)[] = ["42883", "3F000"];
const INSUFFICIENT_PRIVILEGE = "42501";

const MAX_CLIENTS = 4;
/** pg-pool's message when all clients were busy for too long. */
const POOL_EXHAUSTED_MESSAGE = "timeout exceeded when trying to connect";

type OwnerPoolOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly acquireTimeout: number;
};

/** A pool of connections as the database owner. */
export class OwnerPool {
  readonly #pool: pg.Pool;
  readonly #lost = new WeakSet<pg.PoolClient>();
  readonly #acquireTimeout: number;

  constructor({ url, applicationName, acquireTimeout }: OwnerPoolOptions) {
    this.#acquireTimeout = acquireTimeout;
    this.#pool = new pg.Pool({
      Client: findServer(url).makePoolClient(acquireTimeout),
      fallback_application_name: applicationName,
      max: MAX_CLIENTS,
      connectionTimeoutMillis: acquireTimeout,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
    });
    // An idle client was lost; the pool opens another one when needed.
    this.#pool.on("error", () => {});
    // Registered at once: the connection may be lost right after it is established.
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

/** Runs work on a connection of the database owner. */
export type AsOwner = <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>;

/**
 * Runs work in one transaction. Read committed regardless of the database's default: a statement that waited for a
 * locked row must see the new version.
 */
export function inOwnerTransaction<T>(asOwner: AsOwner, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  return asOwner(async (client) => {
    await client.query("begin isolation level read committed");
    try {
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      // If the connection was lost, Postgres has rolled back.
      await client.query("rollback").catch(() => {});
      throw error;
    }
  });
}

type OwnerFunctionOptions = {
  readonly asOwner: AsOwner;
  readonly text: string;
  readonly log: Pick<Logger, "warn">;
  /** Logged once if the owner URL's role does not own the function. */
  readonly warning: string;
};

/** Calls a function of this service as the owner. Returns no rows if the function does not exist or may not be called. */
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
