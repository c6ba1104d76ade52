import { type Lsn, parseLsn } from "../../changes/lsn.ts";
import type { Condition, Log } from "../condition.ts";
import type { Lane } from "../lane.ts";
import { LinkPool, type PoolOptions } from "../pool.ts";
import type { LaneName } from "../room.ts";
import { makeAskPlainly } from "./ask-plainly.ts";
import type { Sample } from "./marks.ts";

/**
 * `behind`: it has not replayed for too long. `no standby`: it was promoted, or never was one. `stranger`: it replays
 * the log of another primary.
 */
export type ReplicaStatus = "serving" | "behind" | "away" | "no standby" | "stranger";

export type ReplicaState = { readonly status: ReplicaStatus; readonly lagSeconds: number | null };

type ReplicaOptions = Omit<PoolOptions, "onState" | "log"> & {
  readonly name: string;
  readonly log: Log;
  /** How many seconds it may be behind. */
  readonly mostLag: number;
};

/** What is asked again for one who waits for it comes no sooner than this after the last answer. */
const AT_LEAST_APART_MS = 20;

export const SYSTEM = "(select system_identifier::text from pg_catalog.pg_control_system())";

const ask = makeAskPlainly(
  `select pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn()::text, ${SYSTEM}`,
  2_000,
);

/** A streaming replica: its connections, and how far it is. */
export class Replica {
  readonly #name: string;
  readonly #log: Log;
  readonly #mostLag: number;
  readonly #pool: LinkPool;
  #replayed: Lsn = 0n;
  #status: ReplicaStatus = "away";
  #lag: number | null = null;
  #checking: Promise<void> | null = null;
  #checkedAt = Number.NEGATIVE_INFINITY;

  constructor({ name, log, mostLag, ...options }: ReplicaOptions) {
    this.#name = name;
    this.#log = log;
    this.#mostLag = mostLag;
    const ofReplica: Log = {
      info: (fields, message) => log.info({ ...fields, replica: name }, message),
      warn: (fields, message) => log.warn({ ...fields, replica: name }, message),
    };
    this.#pool = new LinkPool({ ...options, log: ofReplica, onState: (condition) => this.#onCondition(condition) });
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

  lane(name: LaneName): Lane {
    return this.#pool.lanes[name];
  }

  /** Asks how far it is; the samples say since when that is behind. */
  check(samples: readonly Sample[], system: string | null): Promise<void> {
    this.#checking ??= this.#check(samples, system).finally(() => {
      this.#checking = null;
      this.#checkedAt = performance.now();
    });
    return this.#checking;
  }

  /** Somebody could be answered here if it were a little further by now. */
  checkSoon(samples: readonly Sample[], system: string | null): void {
    if (performance.now() - this.#checkedAt >= AT_LEAST_APART_MS) void this.check(samples, system);
  }

  forgetStatements(): void {
    this.#pool.forgetStatements();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #check(samples: readonly Sample[], system: string | null): Promise<void> {
    try {
      const [inRecovery, replayed, itsSystem] = await ask(this.#pool.lanes.read);
      this.#replayed = parseLsn(replayed ?? "") ?? 0n;
      this.#lag = lagOf(this.#replayed, samples);
      if (inRecovery !== "t") this.#become("no standby");
      else if (system !== null && itsSystem !== system) this.#become("stranger");
      else this.#become(this.#lag === null || this.#lag > this.#mostLag ? "behind" : "serving");
    } catch {
      this.#become("away");
    }
  }

  #become(status: ReplicaStatus): void {
    if (status !== "serving") this.#pool.turnAway();
    if (status === this.#status) return;
    this.#status = status;
    const fields = { replica: this.#name, status, lagSeconds: this.#lag };
    if (status === "serving") this.#log.info(fields, "reads go to the replica");
    else this.#log.warn(fields, "reads go elsewhere than to the replica");
  }

  #onCondition({ status }: Condition): void {
    if (status === "down") this.#become("away");
  }
}

/** How long ago, when the primary was asked last, what has been replayed was all there was; null when that is too long to be known. */
function lagOf(replayed: Lsn, samples: readonly Sample[]): number | null {
  const latest = samples.at(-1);
  const reached = samples.findLast(({ place }) => place <= replayed);
  return latest && reached ? (latest.askedAt - reached.askedAt) / 1000 : null;
}
