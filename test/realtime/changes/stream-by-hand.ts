import { Duplex } from "node:stream";
import type pg from "pg";
import { keepCatalog } from "../../../catalog/catalog-keeper.ts";
import {
  makeFindMissingPolicyColumns,
  makePolicyClaimsReader,
} from "../../../live/dependencies/policy-dependencies.ts";
import type {
  ChangeFollower,
  HistoryPosition,
  ReplicatedRelation,
  ReplicationState,
  ReplicationStream,
} from "../../../live/stream/changes.ts";
import type { AwaitVisible } from "../../../live/stream/transaction-visibility.ts";
import type { Lsn } from "../../../postgres/database/lsn.ts";
import type { FeedDependencies } from "../../../realtime/changes/feed.ts";
import { makePublication } from "../../../realtime/changes/publication.ts";
import { type ChangeSubscriber, endOfTransaction } from "../../../realtime/changes/subscriber.ts";
import type { SocketOutbox } from "../../../realtime/protocol/outbox.ts";
import { Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import { outboxTo } from "../outbox-to.ts";

const log = { info: () => {}, warn: () => {}, error: () => {} };
const HISTORY = { id: "one", timeline: 1, ancestors: new Map() };
const NEWS = { schema: "public", name: "news" };

/** A stream whose events are triggered by the test. */
export class StreamByHand implements ReplicationStream {
  readonly #followers = new Set<ChangeFollower>();
  #state: ReplicationState = { status: "streaming", reason: null, position: 0n, history: HISTORY };
  /** Messages that were emitted and have not arrived yet. */
  readonly underway: (() => void)[] = [];
  /** Followers that replay, which are then live. */
  readonly replaying: (() => void)[] = [];
  newsOid = 0;

  state(): ReplicationState {
    return this.#state;
  }

  follow(follower: ChangeFollower, since?: HistoryPosition) {
    const from = Promise.withResolvers<Lsn>();
    const place = () => {
      this.#followers.add(follower);
      from.resolve(since?.lsn ?? 0n);
    };
    if (since === undefined) place();
    else this.replaying.push(place);
    return { from: from.promise, close: () => void this.#followers.delete(follower) };
  }

  async emit(prefix: string, content: Uint8Array): Promise<void> {
    const message = { prefix, content: Buffer.from(content), transaction: null, lsn: 0n, index: 0 };
    this.underway.push(() => {
      for (const { message: hear } of this.#followers) hear?.(message);
    });
  }

  async close(): Promise<void> {}

  async statistics(): Promise<never> {
    throw new Error("Nobody counts");
  }

  arrive(): void {
    for (const message of this.underway.splice(0)) message();
  }

  /** Commits one transaction, which inserts one row. */
  insert(commitLsn: Lsn, id: string): void {
    const transaction = { xid: Number(commitLsn), commitLsn, commitTime: new Date() };
    const columns = [{ name: "id", typeOid: 23, typeName: "int4", isIdentity: true }];
    const relation = { oid: this.newsOid, ...NEWS, replicaIdentity: "full" as const, columns };
    for (const follower of this.#followers) {
      follower.change({ kind: "INSERT", relation, new: [id], old: null, index: 0 }, transaction);
      follower.commit?.(transaction);
    }
  }

  /** True if a follower wants the changes of the table. */
  wants(table: Pick<ReplicatedRelation, "schema" | "name">): boolean {
    const relation = { oid: 0, ...table, replicaIdentity: "full" as const, columns: [] };
    return [...this.#followers].some((follower) => follower.wants(relation));
  }

  /** The message that the database writes when its schema has changed. */
  changeSchema(): void {
    const message = { prefix: "schema", content: Buffer.alloc(0), transaction: null, lsn: 0n, index: 0 };
    for (const { message: hear } of this.#followers) hear?.(message);
  }

  gap(until: Lsn, reason = "a gap"): void {
    for (const follower of this.#followers) follower.gap({ reason, after: until, until });
  }

  rewind(to: Lsn): void {
    for (const follower of this.#followers) {
      if (!follower.rewind?.(to)) follower.gap({ reason: "a rewind", after: to - 1n, until: to - 1n });
    }
  }

  /** Refuses like a reader that has lost its position. */
  refuse(reason: string): void {
    this.gap(0n, reason);
    this.#state = { ...this.#state, status: "refused", reason };
  }
}

/** Everything of a feed but its stream is real, and all rows are visible. */
export async function servicesWith(
  changes: StreamByHand,
  { owner, awaitVisible = async () => {} }: { owner: pg.Client; awaitVisible?: AwaitVisible },
): Promise<FeedDependencies> {
  const asOwner: Parameters<typeof makePublication>[0] = (work) => work(owner);
  const supervisor = new Supervisor({ log: { info() {}, warn() {} } });
  const catalog = await keepCatalog({
    schemas: ["public"],
    extraSearchPath: [],
    loginRole: "authenticator",
    asOwner,
    listener: null,
    channel: "pgrst",
    log,
    pollIntervalMs: 1_000_000,
  });
  changes.newsOid = catalog.current().findTable(NEWS)!.oid;
  return {
    changes,
    catalog,
    claims: makePolicyClaimsReader(asOwner),
    publication: makePublication(asOwner, "supabase_realtime"),
    findMissingColumns: makeFindMissingPolicyColumns(asOwner),
    checkVisibility: async (_viewer, _table, images) => images.map(() => true),
    filters: { evaluate: () => new Map() },
    awaitVisible,
    supervisor,
    log,
  };
}

/** A subscriber of the table news, the frames that it was sent, and why it ended. */
export class Listener implements ChangeSubscriber {
  readonly caller = { kind: "anonymous", role: "anon", claims: {}, claimsText: "{}", expiresAt: null } as const;
  readonly bindings = [
    { id: 1, event: "*", schema: NEWS.schema, table: NEWS.name, filters: [], select: null },
  ] as const;
  readonly version = "2.0.0";
  readonly topic = "realtime:news";
  readonly outbox: SocketOutbox;
  readonly history = "one";
  readonly sent: string[] = [];
  position = endOfTransaction(0n);
  lost: string | null = null;

  constructor() {
    const write = (chunk: Buffer, _encoding: string, done: () => void) => {
      this.sent.push(chunk.toString());
      done();
    };
    this.outbox = outboxTo(new Duplex({ read() {}, write })).outbox;
  }

  reportGap(reason: string): void {
    this.lost = reason;
  }
}
