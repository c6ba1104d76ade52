import { type Lsn, parseLsn } from "../../changes/lsn.ts";
import { oneAtATime } from "../../one-at-a-time.ts";
import type { Log } from "../condition.ts";
import type { Lane } from "../lane.ts";
import type { PoolOptions } from "../pool.ts";
import { makeAskPlainly } from "./ask-plainly.ts";
import type { Footing } from "./footing.ts";
import { Marks, type Sample } from "./marks.ts";
import { Replica, type ReplicaState, SYSTEM } from "./replica.ts";

const CHECK_MS = 1_000;
const PATIENCE_MS = 2_000;
const MOST_SUBJECTS = 100_000;

// What is inserted, not what is written: a commit that is not waited for is in the log all the same.
const PLACE = "select pg_catalog.pg_current_wal_insert_lsn()::text";
const askPlace = makeAskPlainly(PLACE, PATIENCE_MS);
const askSystem = makeAskPlainly(`select ${SYSTEM}`, PATIENCE_MS);

type ReplicasOptions = Omit<PoolOptions, "url" | "onState"> & {
  readonly urls: readonly string[];
  readonly log: Log;
  /** How many seconds a replica may be behind. */
  readonly mostLag: number;
  readonly primary: Lane;
};

/** The replicas, and who may be answered by which. */
export class Replicas {
  readonly #replicas: readonly Replica[];
  readonly #primary: Lane;
  /** One of each second. */
  readonly #samples: Sample[] = [];
  #latest: Sample | null = null;
  readonly #mostSamples: number;
  readonly #marks = new Marks(MOST_SUBJECTS, performance.now());
  readonly #timer: NodeJS.Timeout;
  #checking: Promise<void> | null = null;
  /** The primary's own; a standby has it too, whoever is the primary by then. */
  #system: string | null = null;

  constructor({ urls, primary, ...options }: ReplicasOptions) {
    this.#replicas = urls.map((url, index) => new Replica({ ...options, url, name: `replica ${index + 1}` }));
    this.#primary = primary;
    // One more than fit into the lag that is allowed, and two for what is on its way.
    this.#mostSamples = Math.ceil((options.mostLag * 1000) / CHECK_MS) + 3;
    this.#timer = setInterval(() => void this.check(), CHECK_MS);
    void this.check();
  }

  get state(): readonly ReplicaState[] {
    return this.#replicas.map(({ state }) => state);
  }

  /** A replica that is far enough for this request; null when none is. */
  choose(footing: Footing): Replica | null {
    const needed = this.#needed(footing);
    const serving = this.#replicas.filter(({ isServing }) => isServing);
    const chosen = serving[footing.seat % serving.length];
    if (!chosen || needed === null) return null;
    if (chosen.replayed >= needed) return chosen;
    chosen.checkSoon(this.#samples, this.#system);
    return null;
  }

  /** To be awaited before it is answered that something was written: what is read next must see it. */
  async wrote({ subject, wrote }: Footing): Promise<void> {
    try {
      const sample = await this.#sampleNow("");
      this.#marks.wrote(subject, sample);
      wrote(sample.place);
    } catch {
      this.#marks.hold(subject, performance.now());
    }
  }

  /** Something may have been written, or not. */
  mayHaveWritten({ subject }: Footing): void {
    this.#marks.hold(subject, performance.now());
  }

  /** Replicas must know of it before they are asked again. */
  schemaChanged(): void {
    this.#marks.holdAll(performance.now());
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
    this.#system ??= (await askSystem(this.#primary))[0] ?? null;
    this.#samples.push(await this.#sampleNow(""));
    if (this.#samples.length > this.#mostSamples) this.#samples.shift();
  }

  /** All who have written meanwhile ask together. */
  readonly #sampleNow = oneAtATime(async (): Promise<Sample> => {
    const askedAt = performance.now();
    const [text] = await askPlace(this.#primary);
    this.#latest = { place: parseLsn(text!)!, askedAt };
    return this.#latest;
  });

  #needed({ subject, after }: Footing): Lsn | null {
    const needed = this.#marks.of(subject, this.#latest, performance.now());
    if (needed === null || after === null) return null;
    return after > needed ? after : needed;
  }
}
