import { type AsOwner, formatLsn, type Lsn } from "#postgres/database";
import { ApiError, unavailable } from "#runtime";
import { Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type {
  ChangeFollower,
  ChangeSubscription,
  HistoryPosition,
  ReplicationOptions,
  ReplicationState,
  ReplicationStatistics,
  ReplicationStream,
  StreamHistory,
} from "./changes.ts";
import { FollowerPosition, Followers } from "./followers.ts";
import { PositionGoneError } from "./position-gone-error.ts";
import type { ReplicationSessionOptions } from "./replication-session.ts";
import { KeeperSlot, measureWal, type ReplicationSlot } from "./replication-slots.ts";
import { validUntil } from "./stream-history.ts";
import { WalReader } from "./wal-reader.ts";

/** Batching lets one commit, which waits for the disk, carry the messages that arrived during the previous one. */
const MAX_MESSAGES_PER_STATEMENT = 1_000;

const DEFAULT_RETENTION_MS = 120_000;
/** The default timeout. Postgres's own (wal_sender_timeout) is a minute. */
const DEFAULT_RESPONSE_TIMEOUT_MS = 15_000;

/** Connects when the first follower comes. */
export function openReplication(options: ReplicationOptions): ReplicationStream {
  return new ChangeStream(options);
}

/** One live reader, which stays open for a while after the last follower, and replays for followers that resume. */
class ChangeStream implements ReplicationStream {
  readonly emit: ReplicationStream["emit"];
  readonly #options: ReplicationOptions;
  readonly #supervisor: Supervisor;
  readonly #session: ReplicationSessionOptions;
  readonly #retentionMs: number;
  readonly #followers: Followers;
  readonly #keeper: KeeperSlot;
  readonly #replays: ChangeReplays;
  readonly #pending = new Map<FollowerPosition, PromiseWithResolvers<Lsn>>();
  #reader: WalReader | null = null;
  #running: Promise<void> | null = null;
  #refusal: string | null = null;
  #retirement: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: ReplicationOptions) {
    const { url, publication, asOwner, log, keep = "auto", keptMs = DEFAULT_RETENTION_MS } = options;
    const { applicationName = "changes", patienceMs = DEFAULT_RESPONSE_TIMEOUT_MS } = options;
    this.#options = options;
    this.#supervisor = options.supervisor ?? new Supervisor(options);
    this.#session = { url, publication, keep, applicationName, patienceMs };
    this.emit = makeMessageEmitter(asOwner);
    this.#followers = new Followers(log);
    this.#retentionMs = keptMs;
    this.#keeper = new KeeperSlot({ url, keptMs, log });
    this.#replays = new ChangeReplays({
      session: this.#session,
      supervisor: this.#supervisor,
      log,
      live: () => this.#reader!,
      handOver: (position) => this.#join(position),
      refuse: (position, error) => this.#takePending(position)?.reject(error),
    });
    // A process that crashed may have left its keeper slot.
    if (keep !== "never") this.#retireLater();
  }

  state(): ReplicationState {
    const reader = this.#reader;
    if (!reader)
      return { status: this.#refusal ? "refused" : "idle", reason: this.#refusal, position: null, history: null };
    const { status, reason, history } = reader;
    return { status, reason, position: status === "opening" ? null : reader.position, history };
  }

  async statistics(): Promise<ReplicationStatistics> {
    const { status, position } = this.state();
    const reader = position === null ? null : this.#reader;
    // This precedes the first await: afterwards the reader may be another one.
    const next = reader?.next() ?? null;
    const seconds = reader?.transaction ? (Date.now() - reader.transaction.commitTime.getTime()) / 1000 : 0;
    const measured = await this.#options.asOwner((client) => measureWal(client, next)).catch(() => null);
    const bytes = measured?.lagBytes ?? null;
    return {
      status,
      followers: this.#followers.size,
      ...this.#followers.counts,
      lag: bytes === null ? null : { bytes, seconds: Math.max(0, seconds) },
      retainedBytes: measured?.retainedBytes ?? null,
    };
  }

  follow(follower: ChangeFollower, since?: HistoryPosition): ChangeSubscription {
    if (this.#closed) throw closedError();
    clearTimeout(this.#retirement);
    const position = new FollowerPosition(follower, since?.lsn ?? 0n, since?.history);
    const from = Promise.withResolvers<Lsn>();
    from.promise.catch(() => {});
    this.#pending.set(position, from);
    this.#reader ??= this.#openReader();
    const reader = this.#reader;
    // It gets what is committed from now on, even if the stream has not started yet.
    if (since === undefined) this.#followers.add(position);
    reader.started.then(
      () => this.#joinOrReplay(position, since),
      (error) => this.#rejectFollower(position, error),
    );
    return { from: from.promise, close: () => this.#removeFollower(position) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retirement);
    for (const position of [...this.#pending.keys()]) this.#takePending(position)?.reject(closedError());
    this.#reader?.close();
    await Promise.all([this.#replays.close(), this.#running, this.#keeper.close()]);
  }

  #openReader(): WalReader {
    this.#refusal = null;
    const reader = new WalReader({
      session: this.#session,
      followers: this.#followers,
      log: this.#options.log,
      report: this.#supervisor.report("change stream"),
      beginAt: ({ earliest, now }) => (earliest > now ? earliest : now),
      onPassed: ({ slot }) => slot && this.#keeper.passed(reader.next(), slot),
    });
    this.#running = reader.run().then(() => {
      if (this.#reader !== reader) return;
      this.#reader = null;
      if (reader.status === "refused") this.#refusal = reader.reason;
    });
    return reader;
  }

  #joinOrReplay(position: FollowerPosition, since: HistoryPosition | undefined): void {
    if (!this.#pending.has(position)) return;
    const { head, history } = this.#reader!;
    if (since === undefined || (since.lsn === head && since.history === history!.id)) {
      position.moveTo(head);
      this.#join(position);
    } else this.#replays.add(position);
  }

  #join(position: FollowerPosition): void {
    this.#followers.add(position);
    this.#takePending(position)?.resolve(position.after);
  }

  #rejectFollower(position: FollowerPosition, error: unknown): void {
    this.#takePending(position)?.reject(error);
    this.#removeFollower(position);
  }

  /** The promise of a follower that does not know its start position yet. */
  #takePending(position: FollowerPosition): PromiseWithResolvers<Lsn> | undefined {
    const from = this.#pending.get(position);
    this.#pending.delete(position);
    return from;
  }

  #removeFollower(position: FollowerPosition): void {
    this.#takePending(position)?.reject(new Error("No longer followed"));
    this.#followers.remove(position);
    this.#replays.remove(position);
    this.#retireLater();
  }

  /** A client that reloads a page comes back in a moment, and opening a stream is expensive. */
  #retireLater(): void {
    if (this.#closed || this.#pending.size > 0 || this.#followers.size > 0 || this.#replays.size > 0) return;
    clearTimeout(this.#retirement);
    this.#retirement = setTimeout(() => this.#retire(), this.#retentionMs);
    this.#retirement.unref();
  }

  async #retire(): Promise<void> {
    this.#reader?.close();
    this.#reader = null;
    await this.#running;
    if (this.#reader || this.#closed || this.#session.keep === "never") return;
    if (!(await this.#keeper.retire())) this.#retireLater();
  }
}

function closedError(): Error {
  return unavailable("Changes are no longer followed: the service stops.");
}

type ChangeReplayOptions = {
  readonly session: ReplicationSessionOptions;
  readonly supervisor: Supervisor;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  live(): Pick<WalReader, "head" | "history">;
  /** Called when the follower has got everything that the live reader will not deliver. */
  handOver(position: FollowerPosition): void;
  refuse(position: FollowerPosition, error: ApiError): void;
};

/** Reads what followers that resume have missed, until it catches up with the live reader: one replay at a time for all. */
class ChangeReplays {
  readonly #options: ChangeReplayOptions;
  #waiting = new Set<FollowerPosition>();
  #followers: Followers | null = null;
  #reader: WalReader | null = null;
  #running: Promise<void> | null = null;

  constructor(options: ChangeReplayOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size + (this.#followers?.size ?? 0);
  }

  add(position: FollowerPosition): void {
    this.#waiting.add(position);
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  remove(position: FollowerPosition): void {
    this.#waiting.delete(position);
    this.#followers?.remove(position);
    if (this.#followers?.size === 0) this.#reader?.close();
  }

  async close(): Promise<void> {
    this.#waiting.clear();
    this.#reader?.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const followers = new Followers(this.#options.log);
      for (const position of this.#waiting) followers.add(position);
      this.#waiting = new Set();
      await this.#replay(followers);
    }
  }

  async #replay(followers: Followers): Promise<void> {
    const { session, supervisor, log } = this.#options;
    const beginAt = (slot: ReplicationSlot, history: StreamHistory) => {
      this.#refuseAbandoned(followers, history);
      this.#refuseUnretained(followers, slot);
      return lowestLsn(followers.positions().map((position) => position.after + 1n)) ?? slot.now;
    };
    const reader = new WalReader({
      session,
      log,
      report: supervisor.report("change stream of clients that resume"),
      followers,
      beginAt,
      onPassed: () => this.#handOverWhenCaughtUp(reader, followers),
    });
    this.#followers = followers;
    this.#reader = reader;
    reader.started.then(
      () => this.#handOverWhenCaughtUp(reader, followers),
      (error) => {
        if (error instanceof ApiError)
          for (const position of followers.positions()) this.#options.refuse(position, error);
      },
    );
    await reader.run();
    this.#followers = null;
    this.#reader = null;
  }

  #refuseUnretained(followers: Followers, { earliest, now }: ReplicationSlot): void {
    for (const position of followers.positions()) {
      if (position.after + 1n >= earliest && position.after < now) continue;
      followers.remove(position);
      const isOutdated = position.after + 1n < earliest;
      this.#options.refuse(position, new PositionGoneError(position.after, isOutdated ? earliest : null));
    }
  }

  /** Refuses positions of another timeline above the point where that timeline was left. */
  #refuseAbandoned(followers: Followers, history: StreamHistory): void {
    for (const position of followers.positions()) {
      const until = validUntil(history, position.history!);
      const isValid = position.after < until;
      // A follower may stand for several positions, of which the others are higher.
      if (isValid && (position.history === history.id || position.follower.rewind?.(until) !== false)) continue;
      followers.remove(position);
      this.#options.refuse(position, positionAbandoned(position.after));
    }
  }

  #handOverWhenCaughtUp(reader: WalReader, followers: Followers): void {
    const { head, history } = this.#options.live();
    if (reader.position >= head && reader.history?.id === history?.id) {
      for (const position of followers.positions()) {
        followers.remove(position);
        if (position.after < reader.position) position.moveTo(reader.position);
        this.#options.handOver(position);
      }
    }
    if (followers.size === 0) reader.close();
  }
}

function lowestLsn(positions: readonly Lsn[]): Lsn | null {
  return positions.reduce<Lsn | null>((low, each) => (low === null || each < low ? each : low), null);
}

function positionAbandoned(after: Lsn): ApiError {
  const message = `The position ${formatLsn(after)} is from another database, or from a timeline that was abandoned.`;
  return new ApiError("gone", "RESOURCE_NOT_FOUND", message, { hint: "Read the rows again, and follow from now on." });
}

type EmittedMessage = { readonly prefix: string; readonly content: string };
type MessageBatch = { readonly messages: EmittedMessage[]; readonly committed: Promise<void> };

/** Writes messages to the WAL, in the order of the calls. */
function makeMessageEmitter(asOwner: AsOwner): (prefix: string, content: Uint8Array) => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  let next: MessageBatch | null = null;

  const begin = (): MessageBatch => {
    const messages: EmittedMessage[] = [];
    const batch = {
      messages,
      committed: last.then(() => {
        if (next === batch) next = null;
        return emitMessages(asOwner, messages);
      }),
    };
    last = batch.committed.catch(() => {});
    return batch;
  };

  return (prefix, content) => {
    if (!next || next.messages.length >= MAX_MESSAGES_PER_STATEMENT) next = begin();
    next.messages.push({ prefix, content: Buffer.from(content).toString("base64") });
    return next.committed;
  };
}

/** Transactional, because other messages are flushed, and so read, only with the next commit. */
async function emitMessages(asOwner: AsOwner, messages: readonly EmittedMessage[]): Promise<void> {
  await asOwner((client) =>
    client.query(
      `select pg_catalog.pg_logical_emit_message(true, prefix, pg_catalog.decode(content, 'base64'))
       from unnest($1::pg_catalog.text[], $2::pg_catalog.text[]) with ordinality as message (prefix, content, number) order by number`,
      [messages.map(({ prefix }) => prefix), messages.map(({ content }) => content)],
    ),
  );
}
