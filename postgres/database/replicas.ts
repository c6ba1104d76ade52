import { DatabaseError } from "pg";
import { batchLookups, type PeerWorkers } from "#runtime/concurrency";
import { makeStatementStep } from "./batch-steps.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { ConnectionPools, type ConnectionPoolsOptions } from "./connection-pools.ts";
import type { DatabaseAvailability, DatabaseLog } from "./database-availability.ts";
import { type Lsn, parseLsn } from "./lsn.ts";
import { LsnFloors, type WalPosition } from "./lsn-floors.ts";
import type { PoolName } from "./pool-sizes.ts";
import { UNLIMITED } from "./response-budget.ts";
import { CollectedRows } from "./result-collectors.ts";
import type { ReadYourWrites, ResultRow } from "./statement.ts";
import { StatementExecution } from "./statement-execution.ts";
import { StatementShape } from "./statement-shape.ts";

/** The minimum interval between checks of a replica that requests wait for. */
const MIN_CHECK_INTERVAL_MS = 20;

const SYSTEM_IDENTIFIER = "(select system_identifier::pg_catalog.text from pg_catalog.pg_control_system())";

const askReplica = makeLoginQuery(
  `select pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn()::pg_catalog.text, ${SYSTEM_IDENTIFIER}`,
  2_000,
);

const CHECK_INTERVAL_MS = 1_000;
const QUERY_TIMEOUT_MS = 2_000;
const MAX_SUBJECTS = 100_000;

// Uses the insert position, not the write position, because it includes commits with synchronous_commit = off.
const CURRENT_LSN = "select pg_catalog.pg_current_wal_insert_lsn()::pg_catalog.text";
const askPrimaryLsn = makeLoginQuery(CURRENT_LSN, QUERY_TIMEOUT_MS);
const askSystemIdentifier = makeLoginQuery(`select ${SYSTEM_IDENTIFIER}`, QUERY_TIMEOUT_MS);

/** A write that another worker reports; `place` is null if the position is unknown. */
type PeerWrite = { readonly subject: string; readonly place: Lsn | null };

type ReplicasOptions = Omit<ConnectionPoolsOptions, "url" | "onState"> & {
  readonly urls: readonly string[];
  readonly log: DatabaseLog;
  /** The maximum lag of a replica, in seconds. */
  readonly maxLag: number;
  readonly primary: ConnectionPool;
  readonly peers: PeerWorkers;
};

/** The replicas. Chooses the one that a caller may read from. */
export class Replicas {
  readonly #replicas: readonly Replica[];
  readonly #primary: ConnectionPool;
  readonly #peers: PeerWorkers;
  /** The positions of the primary, one per second. */
  readonly #samples: WalPosition[] = [];
  #latest: WalPosition | null = null;
  readonly #maxSamples: number;
  readonly #floors = new LsnFloors(MAX_SUBJECTS, performance.now());
  readonly #timer: NodeJS.Timeout;
  #checking: Promise<void> | null = null;
  /** The system identifier of the primary, which its standbys share, also after a failover. */
  #system: string | null = null;

  constructor({ urls, primary, peers, ...options }: ReplicasOptions) {
    this.#replicas = urls.map((url, index) => new Replica({ ...options, url, name: `replica ${index + 1}` }));
    this.#primary = primary;
    this.#peers = peers;
    peers.subscribe("writes", (write) => {
      const { subject, place } = write as PeerWrite;
      this.#floors.wroteElsewhere(subject, place, performance.now());
    });
    // The maximum lag, plus one sample, plus two for delays.
    this.#maxSamples = Math.ceil((options.maxLag * 1000) / CHECK_INTERVAL_MS) + 3;
    this.#timer = setInterval(() => void this.check(), CHECK_INTERVAL_MS);
    void this.check();
  }

  get state(): readonly ReplicaState[] {
    return this.#replicas.map(({ state }) => state);
  }

  /** Returns a replica that has replayed far enough for this request, or null. */
  choose(readYourWrites: ReadYourWrites): Replica | null {
    const required = this.#requiredLsn(readYourWrites);
    const serving = this.#replicas.filter(({ isServing }) => isServing);
    const chosen = serving[readYourWrites.replicaSeed % serving.length];
    if (!chosen || required === null) return null;
    if (chosen.replayed >= required) return chosen;
    chosen.checkSoon(this.#samples, this.#system);
    return null;
  }

  /** Records a write. Awaited before the response, so that the caller's next read sees the write. */
  async recordWrite({ subject, onWrite }: ReadYourWrites): Promise<void> {
    try {
      const sample = await this.#readPrimaryLsn("");
      this.#floors.wrote(subject, sample);
      onWrite(sample.place);
      await this.#publish({ subject, place: sample.place });
    } catch {
      this.#floors.requireLater(subject, performance.now());
      await this.#publish({ subject, place: null });
    }
  }

  /** Records that a write may have been committed. */
  recordPossibleWrite({ subject }: ReadYourWrites): void {
    this.#floors.requireLater(subject, performance.now());
    void this.#publish({ subject, place: null });
  }

  /** Requires that replicas replay the schema change before they are used again. */
  schemaChanged(): void {
    this.#floors.requireLaterForAll(performance.now());
    for (const replica of this.#replicas) replica.forgetStatements();
  }

  /** Checks the positions of the primary and the replicas. Runs every second. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#replicas.map((replica) => replica.close()));
  }

  /** Sends a write to the other workers, so that any of them may serve the caller's next read. */
  #publish(write: PeerWrite): Promise<void> {
    return this.#peers.publish("writes", write);
  }

  async #check(): Promise<void> {
    // While the primary is down nobody writes, so the replicas do not fall behind.
    await this.#takeSample().catch(() => {});
    await Promise.all(this.#replicas.map((replica) => replica.check(this.#samples, this.#system)));
  }

  async #takeSample(): Promise<void> {
    this.#system ??= (await askSystemIdentifier(this.#primary))[0] ?? null;
    this.#samples.push(await this.#readPrimaryLsn(""));
    if (this.#samples.length > this.#maxSamples) this.#samples.shift();
  }

  /** Concurrent writes share one query. */
  readonly #readPrimaryLsn = batchLookups(async (): Promise<WalPosition> => {
    const askedAt = performance.now();
    const [text] = await askPrimaryLsn(this.#primary);
    this.#latest = { place: parseLsn(text!)!, askedAt };
    return this.#latest;
  });

  #requiredLsn({ subject, minLsn }: ReadYourWrites): Lsn | null {
    const required = this.#floors.floorFor(subject, this.#latest, performance.now());
    if (required === null || minLsn === null) return null;
    return minLsn > required ? minLsn : required;
  }
}

/**
 * `behind`: its lag exceeds the maximum. `no standby`: it was promoted, or never was a standby. `stranger`: it replays
 * the WAL of another primary.
 */
type ReplicaStatus = "serving" | "behind" | "away" | "no standby" | "stranger";

export type ReplicaState = { readonly status: ReplicaStatus; readonly lagSeconds: number | null };

type ReplicaOptions = Omit<ConnectionPoolsOptions, "onState" | "log"> & {
  readonly name: string;
  readonly log: DatabaseLog;
  /** The maximum lag, in seconds. */
  readonly maxLag: number;
};

/** A streaming replica: its connection pools and its replay position. */
class Replica {
  readonly #name: string;
  readonly #log: DatabaseLog;
  readonly #maxLag: number;
  readonly #pools: ConnectionPools;
  #replayed: Lsn = 0n;
  #status: ReplicaStatus = "away";
  #lag: number | null = null;
  #checking: Promise<void> | null = null;
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor({ name, log, maxLag, ...options }: ReplicaOptions) {
    this.#name = name;
    this.#log = log;
    this.#maxLag = maxLag;
    const ofReplica: DatabaseLog = {
      info: (fields, message) => log.info({ ...fields, replica: name }, message),
      warn: (fields, message) => log.warn({ ...fields, replica: name }, message),
    };
    this.#pools = new ConnectionPools({
      ...options,
      log: ofReplica,
      onState: (condition) => this.#onAvailability(condition),
    });
  }

  get state(): ReplicaState {
    return { status: this.#status, lagSeconds: this.#lag };
  }

  get isServing(): boolean {
    return this.#status === "serving";
  }

  get replayed(): Lsn {
    return this.#replayed;
  }

  pool(name: PoolName): ConnectionPool {
    return this.#pools.pools[name];
  }

  /** Queries the replay position; derives the lag from the samples. */
  check(samples: readonly WalPosition[], system: string | null): Promise<void> {
    this.#checking ??= this.#check(samples, system).finally(() => {
      this.#checking = null;
      this.#checkedAt = performance.now();
    });
    return this.#checking;
  }

  /** Checks the replica before the next interval, since a request could use it if it had replayed a little further. */
  checkSoon(samples: readonly WalPosition[], system: string | null): void {
    if (performance.now() - this.#checkedAt >= MIN_CHECK_INTERVAL_MS) void this.check(samples, system);
  }

  forgetStatements(): void {
    this.#pools.forgetStatements();
  }

  close(): Promise<void> {
    return this.#pools.close();
  }

  async #check(samples: readonly WalPosition[], system: string | null): Promise<void> {
    try {
      const [inRecovery, replayed, itsSystem] = await askReplica(this.#pools.pools.read);
      this.#replayed = parseLsn(replayed ?? "") ?? 0n;
      this.#lag = lagSeconds(this.#replayed, samples);
      if (inRecovery !== "t") this.#setStatus("no standby");
      else if (system !== null && itsSystem !== system) this.#setStatus("stranger");
      else this.#setStatus(this.#lag === null || this.#lag > this.#maxLag ? "behind" : "serving");
    } catch {
      this.#setStatus("away");
    }
  }

  #setStatus(status: ReplicaStatus): void {
    if (status !== "serving") this.#pools.refuseWaiting();
    if (status === this.#status) return;
    this.#status = status;
    const fields = { replica: this.#name, status, lagSeconds: this.#lag };
    if (status === "serving") this.#log.info(fields, "reads go to the replica");
    else this.#log.warn(fields, "reads go elsewhere than to the replica");
  }

  #onAvailability({ status }: DatabaseAvailability): void {
    if (status === "down") this.#setStatus("away");
  }
}

/** Returns the lag: the age of the newest replayed sample, relative to the latest sample; null if all samples are newer. */
function lagSeconds(replayed: Lsn, samples: readonly WalPosition[]): number | null {
  const latest = samples.at(-1);
  const reached = samples.findLast(({ place }) => place <= replayed);
  return latest && reached ? (latest.askedAt - reached.askedAt) / 1000 : null;
}

/** Makes a query that runs as the login itself, without a caller, and returns one row. It rejects after this many milliseconds. */
function makeLoginQuery(text: string, milliseconds: number): (pool: ConnectionPool) => Promise<ResultRow> {
  const shape = new StatementShape(text);
  return (pool) => {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no answer for ${milliseconds} ms`)), milliseconds);
      const inTime =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(late);
          settle(value);
        };
      const rows = CollectedRows.ofStrings();
      const request = {
        pace: shape,
        context: { role: "" },
        isAnonymous: false,
        steps: [makeStatementStep(shape, { text, values: [] }, { sync: true })],
        main: 0,
        mainCount: 1,
        wantsFields: false,
        responseTimeoutMs: milliseconds,
        readOnly: true,
        allowance: UNLIMITED,
        expires: performance.now() + milliseconds,
        signal: undefined,
      };
      const callbacks = { resolve: inTime(() => resolve(rows.rows[0]!)), reject: inTime(reject) };
      new StatementExecution(pool, request, rows, callbacks).submit();
    });
  };
}

/** Records the positions of writes in the WAL, so that the caller's later reads see them on replicas too. */
export class RecordedWrites {
  readonly #replicas: Replicas | null;

  constructor(replicas: Replicas | null) {
    this.#replicas = replicas;
  }

  async record<Result>(of: ReadYourWrites | undefined, work: Promise<Result>): Promise<Result> {
    if (!this.#replicas || !of) return work;
    try {
      const result = await work;
      await this.#replicas.recordWrite(of);
      return result;
    } catch (error) {
      // If the connection was lost, the write may have been committed; if Postgres rejected it, it was not.
      if (!(error instanceof DatabaseError)) this.#replicas.recordPossibleWrite(of);
      throw error;
    }
  }
}
