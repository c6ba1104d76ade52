import { batchLookups } from "../concurrency/batched-lookup.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import {
  ConnectionPools,
  type ConnectionPoolsOptions,
  type DatabaseAvailability,
  type DatabaseLog,
} from "./connection-pools.ts";
import { type Lsn, parseLsn } from "./lsn.ts";
import { makeStatementStep } from "./pipelined-batch.ts";
import type { PoolName } from "./pool-sizes.ts";
import { LsnFloors, type ReadYourWrites, type WalPosition } from "./read-your-writes.ts";
import { UNLIMITED } from "./response-budget.ts";
import { CollectedRows } from "./result-collectors.ts";
import type { ResultRow } from "./statement.ts";
import { StatementExecution } from "./statement-execution.ts";
import { StatementShape } from "./statement-shape.ts";

/** What is asked again for one who waits for it comes no sooner than this after the last answer. */
const MIN_CHECK_INTERVAL_MS = 20;

const SYSTEM_IDENTIFIER = "(select system_identifier::text from pg_catalog.pg_control_system())";

const askReplica = makeLoginQuery(
  `select pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn()::text, ${SYSTEM_IDENTIFIER}`,
  2_000,
);

const CHECK_INTERVAL_MS = 1_000;
const QUERY_TIMEOUT_MS = 2_000;
const MAX_SUBJECTS = 100_000;

// What is inserted, not what is written: a commit that is not waited for is in the log all the same.
const CURRENT_LSN = "select pg_catalog.pg_current_wal_insert_lsn()::text";
const askPrimaryLsn = makeLoginQuery(CURRENT_LSN, QUERY_TIMEOUT_MS);
const askSystemIdentifier = makeLoginQuery(`select ${SYSTEM_IDENTIFIER}`, QUERY_TIMEOUT_MS);

type ReplicasOptions = Omit<ConnectionPoolsOptions, "url" | "onState"> & {
  readonly urls: readonly string[];
  readonly log: DatabaseLog;
  /** How many seconds a replica may be behind. */
  readonly mostLag: number;
  readonly primary: ConnectionPool;
};

/** The replicas, and who may be answered by which. */
export class Replicas {
  readonly #replicas: readonly Replica[];
  readonly #primary: ConnectionPool;
  /** One of each second. */
  readonly #samples: WalPosition[] = [];
  #latest: WalPosition | null = null;
  readonly #mostSamples: number;
  readonly #floors = new LsnFloors(MAX_SUBJECTS, performance.now());
  readonly #timer: NodeJS.Timeout;
  #checking: Promise<void> | null = null;
  /** The primary's own; a standby has it too, whoever is the primary by then. */
  #system: string | null = null;

  constructor({ urls, primary, ...options }: ReplicasOptions) {
    this.#replicas = urls.map((url, index) => new Replica({ ...options, url, name: `replica ${index + 1}` }));
    this.#primary = primary;
    // One more than fit into the lag that is allowed, and two for what is on its way.
    this.#mostSamples = Math.ceil((options.mostLag * 1000) / CHECK_INTERVAL_MS) + 3;
    this.#timer = setInterval(() => void this.check(), CHECK_INTERVAL_MS);
    void this.check();
  }

  get state(): readonly ReplicaState[] {
    return this.#replicas.map(({ state }) => state);
  }

  /** A replica that is far enough for this request; null when none is. */
  choose(readYourWrites: ReadYourWrites): Replica | null {
    const required = this.#requiredLsn(readYourWrites);
    const serving = this.#replicas.filter(({ isServing }) => isServing);
    const chosen = serving[readYourWrites.replicaSeed % serving.length];
    if (!chosen || required === null) return null;
    if (chosen.replayed >= required) return chosen;
    chosen.checkSoon(this.#samples, this.#system);
    return null;
  }

  /** To be awaited before it is answered that something was written: what is read next must see it. */
  async recordWrite({ subject, onWrite }: ReadYourWrites): Promise<void> {
    try {
      const sample = await this.#readPrimaryLsn("");
      this.#floors.wrote(subject, sample);
      onWrite(sample.place);
    } catch {
      this.#floors.requireLater(subject, performance.now());
    }
  }

  /** Something may have been written, or not. */
  recordPossibleWrite({ subject }: ReadYourWrites): void {
    this.#floors.requireLater(subject, performance.now());
  }

  /** Replicas must know of it before they are asked again. */
  schemaChanged(): void {
    this.#floors.requireLaterForAll(performance.now());
    for (const replica of this.#replicas) replica.forgetStatements();
  }

  /** How far everybody is. Done by itself every second. */
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

  async #check(): Promise<void> {
    // When the primary is away nothing is written, so the replicas get no older meanwhile.
    await this.#takeSample().catch(() => {});
    await Promise.all(this.#replicas.map((replica) => replica.check(this.#samples, this.#system)));
  }

  async #takeSample(): Promise<void> {
    this.#system ??= (await askSystemIdentifier(this.#primary))[0] ?? null;
    this.#samples.push(await this.#readPrimaryLsn(""));
    if (this.#samples.length > this.#mostSamples) this.#samples.shift();
  }

  /** All who have written meanwhile ask together. */
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
 * `behind`: it has not replayed for too long. `no standby`: it was promoted, or never was one. `stranger`: it replays
 * the log of another primary.
 */
type ReplicaStatus = "serving" | "behind" | "away" | "no standby" | "stranger";

export type ReplicaState = { readonly status: ReplicaStatus; readonly lagSeconds: number | null };

type ReplicaOptions = Omit<ConnectionPoolsOptions, "onState" | "log"> & {
  readonly name: string;
  readonly log: DatabaseLog;
  /** How many seconds it may be behind. */
  readonly mostLag: number;
};

/** A streaming replica: its connections, and how far it is. */
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

  constructor({ name, log, mostLag, ...options }: ReplicaOptions) {
    this.#name = name;
    this.#log = log;
    this.#maxLag = mostLag;
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

  /** Asks how far it is; the samples say since when that is behind. */
  check(samples: readonly WalPosition[], system: string | null): Promise<void> {
    this.#checking ??= this.#check(samples, system).finally(() => {
      this.#checking = null;
      this.#checkedAt = performance.now();
    });
    return this.#checking;
  }

  /** Somebody could be answered here if it were a little further by now. */
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

/** How long ago, when the primary was asked last, what has been replayed was all there was; null when that is too long to be known. */
function lagSeconds(replayed: Lsn, samples: readonly WalPosition[]): number | null {
  const latest = samples.at(-1);
  const reached = samples.findLast(({ place }) => place <= replayed);
  return latest && reached ? (latest.askedAt - reached.askedAt) / 1000 : null;
}

/** What the login itself asks, as no caller; the answer has one row. Rejects when it takes longer than this. */
function makeLoginQuery(text: string, milliseconds: number): (lane: ConnectionPool) => Promise<ResultRow> {
  const shape = new StatementShape(text);
  return (lane) => {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no answer for ${milliseconds} ms`)), milliseconds);
      const inTime =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(late);
          settle(value);
        };
      const rows = CollectedRows.ofStrings();
      const question = {
        pace: shape,
        context: { role: "" },
        isAnonymous: false,
        steps: [makeStatementStep(shape, { text, values: [] }, { sync: true })],
        main: 0,
        wantsFields: false,
        patience: milliseconds,
        readOnly: true,
        allowance: UNLIMITED,
        expires: performance.now() + milliseconds,
        signal: undefined,
      };
      const answer = { resolve: inTime(() => resolve(rows.rows[0]!)), reject: inTime(reject) };
      new StatementExecution(lane, question, rows, answer).submit();
    });
  };
}
