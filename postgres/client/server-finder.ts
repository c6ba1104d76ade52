import pg from "pg";
import { type DatabaseServer, parseServers, type SessionAttributes } from "#config/connection-string";
import { ExplainedError } from "#runtime";
import { startResponsiveTimer } from "#runtime/concurrency";
import { useSafeSearchPath } from "./search-path.ts";
import { checkMessages } from "./server-messages.ts";

/** With several servers, one that does not answer must not delay the others for long. */
const SEARCH_TIMEOUT_MS = 3_000;
/** SQLSTATE classes of a refused login and of a missing database, which somebody has to correct. */
const LOGIN_REFUSED = /^(28|3D)/;
/** pgpool would send it to a standby without the comment. */
export const IS_IN_RECOVERY = "/*NO LOAD BALANCE*/ select pg_catalog.pg_is_in_recovery() as answer";
const IS_READ_ONLY =
  "/*NO LOAD BALANCE*/ select pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool as answer";

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refuses connections",
  ECONNRESET: "closes connections",
  ENOENT: "is not running",
  ENOTFOUND: "is not found",
  EAI_AGAIN: "is not found",
  EHOSTUNREACH: "is not reachable",
  ETIMEDOUT: "does not answer",
};
const TIMEOUT = "timeout expired";
const TIMEOUT_MESSAGES = [TIMEOUT, "Connection terminated due to connection timeout"];

/** What a session must be, by `target_session_attrs`; `any` accepts every session. */
const WANTED_SERVER: Readonly<Record<SessionAttributes, string>> = {
  any: "server",
  primary: "primary",
  "read-write": "primary",
  "read-only": "read-only server",
  standby: "standby",
  "prefer-standby": "server",
};

/** No server of the connection string is what it asks for. */
export class NoServerError extends ExplainedError {
  override name = "NoServerError";
  /** Why each server cannot be used. */
  readonly faults: readonly Error[];

  constructor(wanted: SessionAttributes, servers: readonly ServerState[]) {
    const known = servers.filter(({ fault }) => fault !== null);
    const reasons = known.map(({ name, fault }) => `${name} ${describeFault(fault!)}`);
    super(`no ${WANTED_SERVER[wanted]}: ${reasons.join(", ")}`);
    this.faults = known.map(({ fault }) => fault!);
  }

  /** Whether a server answers that is something else. */
  get isAnswered(): boolean {
    return this.faults.some((fault) => fault instanceof UnsuitableServerError);
  }
}

/** The server answers, and is not what the connection string asks for. */
export class UnsuitableServerError extends Error {
  override name = "UnsuitableServerError";
}

/** For a new client: the connection string of one server. The finder limits the time, since pg counts that in which the event loop is blocked. */
export type ServerOptions = { readonly connectionString: string; readonly connectionTimeoutMillis: 0 };

export type FoundSession<Client extends pg.Client> = { readonly client: Client; readonly serverName: string };

type ServerState = DatabaseServer & {
  /** Why the last attempt failed; null after a success. */
  fault: Error | null;
  failedAt: number;
  /** It was a standby although its parameters said otherwise: a pooler repeats those of an earlier connection. */
  isDoubted: boolean;
};

/** Finds the server of a connection string to open sessions on. Remembers the last one that was suitable. */
export class ServerFinder {
  readonly #wanted: SessionAttributes;
  readonly #isBalanced: boolean;
  readonly #servers: readonly ServerState[];
  #latest: ServerState | null = null;

  constructor(url: string) {
    const { servers, wanted, isBalanced } = parseServers(url);
    this.#wanted = wanted;
    this.#isBalanced = isBalanced;
    this.#servers = servers.map((server) => ({ ...server, fault: null, failedAt: 0, isDoubted: false }));
  }

  /** The names of all servers, for messages. */
  get names(): string {
    return this.#servers.map(({ name }) => name).join(",");
  }

  /** The server that the last session was opened on; null if that failed. */
  get latest(): DatabaseServer | null {
    return this.#latest;
  }

  /** Whether sessions must be on a server that takes writes. */
  get requiresPrimary(): boolean {
    return WANTED_SERVER[this.#wanted] === "primary";
  }

  /** Opens a session on the first suitable server. `makeClient` is called for each attempt; a time limit of 0 is none. */
  async connect<Client extends pg.Client>(
    makeClient: (server: ServerOptions) => Client,
    timeoutMs = 0,
  ): Promise<FoundSession<Client>> {
    const preferences = this.#wanted === "prefer-standby" ? (["standby", "any"] as const) : [this.#wanted];
    let failure: unknown = null;
    for (const wanted of preferences) {
      for (const server of this.#inOrder()) {
        const client = makeClient(optionsOf(server));
        try {
          await this.#admit(client, { server, wanted, timeoutMs, connect: () => client.connect() });
          return { client, serverName: server.name };
        } catch (error) {
          // A refused login is what to report, and no reason to leave the others out: it may be that of a server which is being set up.
          if (failure === null || failure instanceof NoServerError) failure = this.#toFailure(error);
        }
      }
    }
    throw failure;
  }

  /**
   * For a pool of the service's own sessions, which makes its clients by itself: an attempt takes one server, and the next attempt another
   * one if it failed.
   */
  makePoolClient(timeoutMs: number): typeof pg.Client {
    const choose = () => this.#inOrder()[0]!;
    const admit = async (client: pg.Client, server: ServerState, connect: () => Promise<unknown>) => {
      const wanted = this.#wanted === "prefer-standby" ? "any" : this.#wanted;
      await this.#admit(client, { server, wanted, timeoutMs, connect }).catch((error) => {
        throw this.#toFailure(error);
      });
    };
    return class PooledClient extends pg.Client {
      readonly serverName: string;
      readonly #server: ServerState;
      #lost: Error | null = null;

      constructor(config?: string | pg.ClientConfig) {
        const server = choose();
        super({ ...(config as pg.ClientConfig), ...optionsOf(server) });
        this.#server = server;
        this.serverName = server.name;
        // The pool listens only after the connection was admitted, and it may be lost before that.
        this.on("error", (error) => {
          this.#lost ??= error;
        });
      }

      override connect(): Promise<this>;
      override connect(callback: (error: Error | null) => void): void;
      override connect(callback?: (error: Error | null) => void): Promise<this> | undefined {
        const connected = admit(this, this.#server, () => super.connect()).then(async () => {
          if (!this.#lost) await useSafeSearchPath(this);
          if (this.#lost) throw this.#lost;
          return this;
        });
        if (!callback) return connected;
        connected.then(() => callback(null), callback);
        return undefined;
      }
    };
  }

  /** The server is a standby by now. Its parameters are no longer trusted, as a pooler may repeat old ones. */
  noteStandby(name: string): void {
    for (const server of this.#servers) if (server.name === name) this.#noteStandby(server);
  }

  #noteStandby(server: ServerState): void {
    server.isDoubted = true;
    this.#noteFault(server, new UnsuitableServerError("is a standby"));
  }

  #noteFault(server: ServerState, fault: Error): void {
    server.fault = fault;
    server.failedAt = performance.now();
    if (this.#latest === server) this.#latest = null;
  }

  /** The last suitable server first, the one that has failed most recently last. */
  #inOrder(): readonly ServerState[] {
    if (this.#servers.length === 1) return this.#servers;
    const rankOf = (server: ServerState) => {
      if (this.#isBalanced) return server.fault ? 1 + Math.random() : Math.random();
      return server === this.#latest ? Number.NEGATIVE_INFINITY : server.failedAt;
    };
    return this.#servers
      .map((server) => ({ server, rank: rankOf(server) }))
      .toSorted((one, other) => one.rank - other.rank)
      .map(({ server }) => server);
  }

  #connectLimit(timeoutMs: number): number {
    const isAlone = this.#servers.length === 1;
    return isAlone ? timeoutMs : Math.min(timeoutMs || Number.POSITIVE_INFINITY, SEARCH_TIMEOUT_MS);
  }

  async #admit(client: pg.Client, { server, wanted, timeoutMs, connect }: SessionAdmission): Promise<void> {
    checkMessages(client.connection);
    // Without a listener, the end of the connection would end the process.
    client.on("error", () => {});
    const reported = new Map<string, string>();
    if (wanted !== "any") {
      client.connection.on("parameterStatus", ({ parameterName, parameterValue }) =>
        reported.set(parameterName, parameterValue),
      );
    }
    try {
      await withinTimeLimit(client, this.#connectLimit(timeoutMs), connect());
      const session: CheckedSession = { client, reported, isDoubted: server.isDoubted };
      const objection = await withinTimeLimit(client, SEARCH_TIMEOUT_MS, findObjection(session, wanted));
      if (objection) throw new UnsuitableServerError(objection);
      server.fault = null;
      this.#latest = server;
    } catch (error) {
      if (error instanceof UnsuitableServerError) client.end().catch(() => {});
      else client.connection.stream.destroy();
      this.#noteFault(server, error as Error);
      throw error;
    }
  }

  #toFailure(error: unknown): unknown {
    const isAlone = this.#servers.length === 1 && !(error instanceof UnsuitableServerError);
    if (isAlone || LOGIN_REFUSED.test((error as pg.DatabaseError).code ?? "")) return error;
    return new NoServerError(this.#wanted, this.#servers);
  }
}

type SessionAdmission = {
  readonly server: ServerState;
  readonly wanted: SessionAttributes;
  readonly timeoutMs: number;
  readonly connect: () => Promise<unknown>;
};

function optionsOf({ url }: ServerState): ServerOptions {
  return { connectionString: url, connectionTimeoutMillis: 0 };
}

const finders = new Map<string, ServerFinder>();

/** One finder for all sessions of a connection string, which share what it knows. */
export function findServer(url: string): ServerFinder {
  const known = finders.get(url) ?? new ServerFinder(url);
  finders.set(url, known);
  return known;
}

type CheckedSession = {
  readonly client: pg.ClientBase;
  /** The parameters that the server has reported. */
  readonly reported: ReadonlyMap<string, string>;
  readonly isDoubted: boolean;
};

/** Why the session is not what is wanted; null if it is. */
async function findObjection(session: CheckedSession, wanted: SessionAttributes): Promise<string | null> {
  switch (wanted) {
    case "any":
    case "prefer-standby":
      return null;
    case "primary":
      return (await isStandby(session)) ? "is a standby" : null;
    case "read-write":
      if (await isStandby(session)) return "is a standby";
      return (await isReadOnly(session)) ? "takes no writes (default_transaction_read_only)" : null;
    case "standby":
      return (await isStandby(session)) ? null : "is a primary";
    case "read-only":
      return (await isStandby(session)) || (await isReadOnly(session)) ? null : "takes writes";
  }
}

/** Ends the session if the server does not answer; a limit of 0 is none. */
async function withinTimeLimit<T>(client: pg.Client, milliseconds: number, answer: Promise<T>): Promise<T> {
  if (milliseconds === 0) return answer;
  const stop = startResponsiveTimer(milliseconds, () => client.connection.stream.destroy(new Error(TIMEOUT)));
  try {
    return await answer;
  } finally {
    stop();
  }
}

/** Postgres reports `in_hot_standby`; a pooler may report nothing, or what was so when it started. */
async function isStandby({ client, reported, isDoubted }: CheckedSession): Promise<boolean> {
  if (reported.get("in_hot_standby") === "off" && !isDoubted) return false;
  return askWhether(client, IS_IN_RECOVERY);
}

async function isReadOnly({ client, reported }: CheckedSession): Promise<boolean> {
  const value = reported.get("default_transaction_read_only");
  return value === undefined ? askWhether(client, IS_READ_ONLY) : value === "on";
}

/** In a transaction, which a router sends to the primary, or at least to one server. */
async function askWhether(client: pg.ClientBase, condition: string): Promise<boolean> {
  await client.query("begin");
  const { rows } = await client.query<{ answer: boolean }>(condition);
  await client.query("commit");
  return rows[0]!.answer;
}

/** Whether the session of a client is on a standby. Ends its transaction. */
export async function isClientOnStandby(client: pg.ClientBase): Promise<boolean> {
  await client.query("rollback");
  return askWhether(client, IS_IN_RECOVERY);
}

/** Whether the server accepts connections, or the network does, and nothing answers. */
export function isTimeout(fault: Error): boolean {
  return TIMEOUT_MESSAGES.includes(fault.message);
}

function describeFault(fault: Error & { code?: string }): string {
  if (fault instanceof UnsuitableServerError) return fault.message;
  if (isTimeout(fault)) return "does not answer";
  return FAULTS[fault.code ?? ""] ?? `cannot be used (${fault.message})`;
}
