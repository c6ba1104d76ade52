import { unavailable } from "../errors.ts";
import { Audience, Seat } from "./audience.ts";
import type { Changes, ChangesOptions, ChangesState, ChangesStatistics, Follower, Following } from "./changes.ts";
import { makeEmitter } from "./emitter.ts";
import { Keeper } from "./keeper.ts";
import type { Lsn } from "./lsn.ts";
import { Reading } from "./reading.ts";
import { Replays } from "./replays.ts";
import type { SessionOptions } from "./session.ts";
import { measureLog } from "./slots.ts";

const KEPT_MS = 120_000;
/** Postgres's own, for whoever says nothing, is a minute. */
const PATIENCE_MS = 15_000;

/** The live reading, which is there while somebody follows and a while longer, and replays for those who resume. */
export class ChangeStream implements Changes {
  readonly emit: Changes["emit"];
  readonly #options: ChangesOptions;
  readonly #session: SessionOptions;
  readonly #keptMs: number;
  readonly #audience: Audience;
  readonly #keeper: Keeper;
  readonly #replays: Replays;
  readonly #pending = new Map<Seat, PromiseWithResolvers<Lsn>>();
  #live: Reading | null = null;
  #running: Promise<void> | null = null;
  #refusal: string | null = null;
  #retirement: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ChangesOptions) {
    const { url, publication, asOwner, log, keep = "auto", keptMs = KEPT_MS } = options;
    const { applicationName = "changes", patienceMs = PATIENCE_MS } = options;
    this.#options = options;
    this.#session = { url, publication, keep, applicationName, patienceMs };
    this.emit = makeEmitter(asOwner);
    this.#audience = new Audience(log);
    this.#keptMs = keptMs;
    this.#keeper = new Keeper({ url, keptMs, log });
    this.#replays = new Replays({
      session: this.#session,
      log,
      liveHead: () => this.#live!.head,
      handOver: (seat) => this.#seat(seat),
      refuse: (seat, error) => this.#settle(seat)?.reject(error),
    });
    // Of a process that is gone, perhaps.
    if (keep !== "never") this.#retireLater();
  }

  state(): ChangesState {
    const live = this.#live;
    if (!live)
      return { status: this.#refusal ? "refused" : "idle", reason: this.#refusal, position: null, history: null };
    const { status, reason, history } = live;
    return { status, reason, position: status === "opening" ? null : live.position, history };
  }

  async statistics(): Promise<ChangesStatistics> {
    const { status, position } = this.state();
    const live = position === null ? null : this.#live;
    // Read before anything is awaited: later it may be another stream.
    const next = live?.next() ?? null;
    const seconds = live?.transaction ? (Date.now() - live.transaction.commitTime.getTime()) / 1000 : 0;
    const measured = await this.#options.asOwner((client) => measureLog(client, next)).catch(() => null);
    const bytes = measured?.lagBytes ?? null;
    return {
      status,
      followers: this.#audience.size,
      ...this.#audience.counts,
      lag: bytes === null ? null : { bytes, seconds: Math.max(0, seconds) },
      retainedBytes: measured?.retainedBytes ?? null,
    };
  }

  follow(follower: Follower, since?: Lsn): Following {
    if (this.#closed) throw closedError();
    clearTimeout(this.#retirement);
    const seat = new Seat(follower, since ?? 0n);
    const from = Promise.withResolvers<Lsn>();
    from.promise.catch(() => {});
    this.#pending.set(seat, from);
    this.#live ??= this.#open();
    const live = this.#live;
    // It is told of what is committed from here on, though the stream may still have to begin.
    if (since === undefined) this.#audience.add(seat);
    live.started.then(
      () => this.#place(seat, since),
      (error) => this.#refuse(seat, error),
    );
    return { from: from.promise, close: () => this.#leave(seat) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retirement);
    for (const seat of [...this.#pending.keys()]) this.#settle(seat)?.reject(closedError());
    this.#live?.close();
    await Promise.all([this.#replays.close(), this.#running, this.#keeper.close()]);
  }

  #open(): Reading {
    this.#refusal = null;
    const live = new Reading({
      session: this.#session,
      audience: this.#audience,
      log: this.#options.log,
      beginAt: ({ earliest, now }) => (earliest > now ? earliest : now),
      onPassed: (reading) => reading.slot && this.#keeper.passed(reading.next(), reading.slot),
    });
    this.#running = live.run().then(() => {
      if (this.#live !== live) return;
      this.#live = null;
      if (live.status === "refused") this.#refusal = live.reason;
    });
    return live;
  }

  #place(seat: Seat, since: Lsn | undefined): void {
    if (!this.#pending.has(seat)) return;
    const { head } = this.#live!;
    if (since === undefined || since === head) {
      seat.after = head;
      this.#seat(seat);
    } else this.#replays.add(seat);
  }

  #seat(seat: Seat): void {
    this.#audience.add(seat);
    this.#settle(seat)?.resolve(seat.after);
  }

  #refuse(seat: Seat, error: unknown): void {
    this.#settle(seat)?.reject(error);
    this.#leave(seat);
  }

  /** Of whoever waits to be told from where it follows. */
  #settle(seat: Seat): PromiseWithResolvers<Lsn> | undefined {
    const from = this.#pending.get(seat);
    this.#pending.delete(seat);
    return from;
  }

  #leave(seat: Seat): void {
    this.#settle(seat)?.reject(new Error("No longer followed"));
    this.#audience.remove(seat);
    this.#replays.remove(seat);
    this.#retireLater();
  }

  /** Whoever reloads a page comes back in a moment, and opening a stream has its cost. */
  #retireLater(): void {
    if (this.#closed || this.#pending.size > 0 || this.#audience.size > 0 || this.#replays.size > 0) return;
    clearTimeout(this.#retirement);
    this.#retirement = setTimeout(() => this.#retire(), this.#keptMs);
    this.#retirement.unref();
  }

  async #retire(): Promise<void> {
    this.#live?.close();
    this.#live = null;
    await this.#running;
    if (this.#live || this.#closed || this.#session.keep === "never") return;
    if (!(await this.#keeper.retire())) this.#retireLater();
  }
}

function closedError(): Error {
  return unavailable("Changes are no longer followed: the service stops.");
}
