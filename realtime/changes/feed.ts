import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type {
  AwaitVisible,
  ChangeFollower,
  ChangeSubscription,
  CommittedTransaction,
  LogicalMessage,
  ReplicationGap,
  ReplicationStream,
  RowChange,
} from "#live/stream";
import type { Lsn } from "#postgres/database";
import { unavailable } from "#runtime";
import { batchLookups, type Supervisor, type WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { type Outbox, Pacer } from "../protocol/outbox.ts";
import { type AudienceDependencies, PublicationWatch } from "./audience.ts";
import { BoundTables } from "./bound-tables.ts";
import { type CheckChanges, type DeliveriesByRelation, makeCheckChanges } from "./check-changes.ts";
import { changeBytes, changePosition, type FeedEntry, isStep, type PendingChange } from "./delivery.ts";
import { FilterBacklogs, type FilterEvaluator } from "./filter-evaluation.ts";
import type { CheckRowVisibility } from "./row-visibility.ts";
import {
  type ChangeSubscriber,
  endOfTransaction,
  isAfter,
  type ResumePoint,
  replayStart,
  type StreamPosition,
} from "./subscriber.ts";

export type FeedDependencies = AudienceDependencies & {
  readonly changes: ReplicationStream;
  readonly checkVisibility: CheckRowVisibility;
  readonly filters: Pick<FilterEvaluator, "evaluate">;
  readonly awaitVisible: AwaitVisible;
  readonly supervisor: Supervisor;
  readonly log: Pick<Logger, "warn" | "error">;
};

type ChangeFeedOptions = FeedDependencies & {
  /** The position at which the feed starts; null for the current one. */
  readonly since: ResumePoint | null;
  /** Handles messages of other gateways; the stream waits for it. */
  readonly onMessage?: (message: LogicalMessage) => void | Promise<void>;
  /** Called when messages may have been missed. */
  readonly onGap?: () => void;
};

/** Changes that are delivered together: all, those not delivered before, and the position after them. */
type DeliveryRound = {
  readonly changes: readonly PendingChange[];
  readonly delivered: readonly PendingChange[];
  readonly end: Promise<StreamPosition>;
};
type DeliveryRun = {
  readonly deliveries: DeliveriesByRelation;
  readonly delayed: ReadonlySet<ChangeSubscriber>;
  readonly delivered: PendingChange[];
};

const NO_DELIVERIES: DeliveriesByRelation = new Map();
const NO_SUBSCRIBERS: ReadonlySet<ChangeSubscriber> = new Set();

/** The limit of changes that are checked together: each subscriber may see a different version of each. */
const MAX_BATCH = 500;
const MIN_BATCH = 20;
const MAX_BATCH_DELIVERIES = 50_000;
/** The limits of queued changes and bytes at which the stream is paused. */
const MAX_QUEUED_CHANGES = 2_000;
const MAX_QUEUED_BYTES = 8 * 2 ** 20;
/** The delay after which a delivery is late: normally, checks of policies and visible commits take less. */
const LATE_MS = 6_000;
const ABANDONED = "the database was promoted without changes that may have been sent";
const MARKER_PREFIX = "realtime:mark";
/** The prefix of the message that the database writes to the stream ahead of the changes made under a new schema. */
const SCHEMA_CHANGED_PREFIX = "schema";

/** Delivers the changes of the stream, from one position on, to its subscribers in commit order. */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #following: ChangeSubscription;
  readonly #markers = new Map<string, () => void>();
  readonly #awaitMarkerTogether: (key: string) => Promise<void>;
  readonly #pacer = new Pacer();
  readonly #backlogs = new FilterBacklogs();
  /** Subscribers whose tables are decoded. Those of them who are sent changes are active. */
  readonly #subscribers = new Set<ChangeSubscriber>();
  readonly #boundTables = new BoundTables();
  readonly #active = new Set<ChangeSubscriber>();
  readonly #checkChanges: CheckChanges;
  readonly #publicationWatch: PublicationWatch;
  readonly #report: WorkReport;
  #entries: FeedEntry[] = [];
  #bytes = 0;
  #capacity: PromiseWithResolvers<void> | null = null;
  /** Resolves when the catalogue is at least as new as the stream. */
  #upToDate: Promise<void> = Promise.resolve();
  /** Resolves when the schema changes of the stream are visible to new transactions. */
  #schemaVisible: Promise<unknown> = Promise.resolve();
  /** The last transaction that changed the schema. */
  #lastSchemaXid: number | null = null;
  /** The number of schema changes that the stream has reported. */
  #schemaChanges = 0;
  #gaps = 0;
  /** The position from which changes in delivery are discarded: they are not on the timeline that the stream has changed to. */
  #abandonedFrom: Lsn | null = null;
  #isRunning = false;
  #isClosed = false;
  #deliveredTo: StreamPosition;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#checkChanges = makeCheckChanges(options, {
      subscribers: this.#active,
      schemaChanges: () => this.#schemaChanges,
      upToDate: () => this.#upToDate,
      history: () => this.history,
    });
    this.#publicationWatch = new PublicationWatch({ ...options, subscribers: this.#subscribers });
    this.#report = options.supervisor.report("delivery of changes");
    this.#deliveredTo = options.since?.position ?? endOfTransaction(0n);
    this.#awaitMarkerTogether = batchLookups(() => this.#awaitMarker());
    this.#following = options.changes.follow(this.#follower(), options.since ? replayStart(options.since) : undefined);
    // Earlier schema changes were not received.
    if (options.since) this.#reloadCatalog();
    this.#following.from.then(() => this.#reloadCatalog()).catch(() => {});
  }

  /** Resolves when no change is missed any more; rejects with an HttpError if there is no stream. */
  async opened(): Promise<void> {
    await this.#following.from;
  }

  /** Throws if the stream was refused meanwhile, for example because the publication was dropped; it is retried automatically. */
  assertAvailable(): void {
    const { status, reason } = this.#options.changes.state();
    if (status === "refused") throw unavailable(reason!);
  }

  get isEmpty(): boolean {
    return this.#subscribers.size === 0;
  }

  get isIdle(): boolean {
    return this.#entries.length === 0 && !this.#isRunning && this.#backlogs.isEmpty;
  }

  get deliveredTo(): StreamPosition {
    return this.#deliveredTo;
  }

  has(subscriber: ChangeSubscriber): boolean {
    return this.#subscribers.has(subscriber);
  }

  /** The cluster and timeline in which positions are valid. */
  get history(): string {
    return this.#options.changes.state().history?.id ?? "";
  }

  /** The position up to which everything was delivered. */
  get position(): StreamPosition {
    const { position } = this.#options.changes.state();
    return this.isIdle && position !== null && position > this.#deliveredTo.commitLsn
      ? endOfTransaction(position)
      : this.#deliveredTo;
  }

  /** The position up to which everything was delivered to this subscriber. */
  positionOf(subscriber: ChangeSubscriber): StreamPosition {
    return this.#backlogs.positionOf(subscriber) ?? this.position;
  }

  /** Delivers transactions that commit after this call. Resolves when the stream has reached that point. */
  async subscribe(subscriber: ChangeSubscriber): Promise<void> {
    this.#addSubscriber(subscriber);
    try {
      await this.opened();
      await this.#publicationWatch.begin(subscriber);
      await this.#awaitMarkerTogether("");
      // A refusal is reported to the subscribers of that moment only; this one would never receive anything.
      this.assertAvailable();
    } catch (error) {
      this.#removeSubscriber(subscriber);
      throw error;
    }
    if (this.#subscribers.has(subscriber)) this.#active.add(subscriber);
  }

  /** Continues at the subscriber's position. Allowed only if nothing later was delivered here. */
  addFromReplay(subscriber: ChangeSubscriber): void {
    this.#publicationWatch.continue(subscriber);
    this.#addSubscriber(subscriber);
    this.#active.add(subscriber);
  }

  /** Replaces a subscriber between two changes. */
  replace(old: ChangeSubscriber, successor: ChangeSubscriber): Promise<void> {
    this.#addSubscriber(successor);
    this.#publicationWatch.continue(successor);
    return new Promise((resolve) => {
      const run = (): void => {
        if (this.#backlogs.has(old)) {
          void this.#backlogs.drained(old).then(() => (this.#isClosed ? run() : this.#push({ kind: "step", run })));
          return;
        }
        successor.position = old.position;
        if (this.#active.has(old) && this.#subscribers.has(successor)) this.#active.add(successor);
        this.remove(old);
        resolve();
      };
      this.#push({ kind: "step", run });
    });
  }

  remove(subscriber: ChangeSubscriber): void {
    this.#removeSubscriber(subscriber);
    this.#active.delete(subscriber);
    this.#backlogs.remove(subscriber);
  }

  /** Removes all subscribers, and returns them. */
  removeAll(): readonly ChangeSubscriber[] {
    const subscribers = [...this.#subscribers];
    for (const subscriber of subscribers) this.#removeSubscriber(subscriber);
    this.#active.clear();
    this.#backlogs.clear();
    return subscribers;
  }

  close(): void {
    this.#isClosed = true;
    this.#following.close();
    this.#publicationWatch.close();
    this.#report.close();
    const entries = this.#entries;
    this.#entries = [];
    // A step that never runs would leave its caller waiting.
    for (const entry of entries) if (isStep(entry)) entry.run();
    this.#capacity?.resolve();
    this.#backlogs.clear();
  }

  #addSubscriber(subscriber: ChangeSubscriber): void {
    if (this.#subscribers.has(subscriber)) return;
    this.#subscribers.add(subscriber);
    this.#boundTables.add(subscriber.bindings);
  }

  #removeSubscriber(subscriber: ChangeSubscriber): void {
    if (this.#subscribers.delete(subscriber)) this.#boundTables.remove(subscriber.bindings);
  }

  #follower(): ChangeFollower {
    return {
      wants: (relation) => this.#boundTables.has(relation),
      change: (change, transaction) => this.#receiveChange(change, transaction),
      commit: ({ commitLsn }) => this.#push({ kind: "commit", position: endOfTransaction(commitLsn) }),
      message: (message) => this.#handleMessage(message),
      gap: (gap) => this.#handleGap(gap),
      rewind: (to) => this.#rewind(to),
    };
  }

  #receiveChange(change: RowChange, transaction: CommittedTransaction): Promise<void> | undefined {
    if (change.kind === "TRUNCATE") return undefined;
    const pending = { change, transaction };
    this.#bytes += changeBytes(pending);
    this.#push(pending);
    if (!this.#isFull) return undefined;
    this.#capacity ??= Promise.withResolvers();
    return this.#capacity.promise;
  }

  /** True if the queue is full: the stream is paused then, so changes are delivered before the end of their transaction. */
  get #isFull(): boolean {
    return this.#entries.length >= MAX_QUEUED_CHANGES || this.#bytes >= MAX_QUEUED_BYTES;
  }

  #handleMessage(message: LogicalMessage): void | Promise<void> {
    if (message.prefix === SCHEMA_CHANGED_PREFIX) this.#handleSchemaChange(message.transaction);
    else if (message.prefix !== MARKER_PREFIX) return this.#options.onMessage?.(message);
    else {
      const resolveMarker = this.#markers.get(message.content.toString());
      if (resolveMarker) this.#push({ kind: "step", run: resolveMarker });
    }
  }

  /** Sends a message to itself through the stream: everything committed before it has then arrived. */
  async #awaitMarker(): Promise<void> {
    this.assertAvailable();
    const id = randomUUID();
    const resolveMarker = Promise.withResolvers<void>();
    this.#markers.set(id, resolveMarker.resolve);
    try {
      await this.#options.changes.emit(MARKER_PREFIX, Buffer.from(id));
      await resolveMarker.promise;
    } finally {
      this.#markers.delete(id);
    }
  }

  #handleGap({ reason, until }: ReplicationGap): void {
    this.#gaps++;
    this.#deliveredTo = endOfTransaction(until);
    this.#entries = this.#entries.filter(isStep);
    this.#bytes = 0;
    this.#backlogs.clear();
    for (const subscriber of [...this.#active]) subscriber.reportGap(reason);
    this.#recover();
  }

  /** Discards changes that are not on the new timeline. Returns false if some were delivered: then the feed gets a gap. */
  #rewind(to: Lsn): boolean {
    if (this.#deliveredTo.commitLsn >= to) return false;
    this.#abandonedFrom = to;
    this.#entries = this.#entries.filter((entry) => !this.#isAbandoned(entry));
    for (const subscriber of [...this.#active]) {
      // Changes that wait for filters are not distinguished.
      if (subscriber.position.commitLsn >= to || this.#backlogs.has(subscriber)) subscriber.reportGap(ABANDONED);
    }
    this.#recover();
    return true;
  }

  /** Recovers after a loss of messages of other gateways, of a marker, or of a change of the schema. */
  #recover(): void {
    for (const resolveMarker of this.#markers.values()) resolveMarker();
    this.#reloadCatalog();
    this.#options.onGap?.();
  }

  /** Handles a schema change once per transaction: its changes become visible together, which may be after they were received. */
  #handleSchemaChange(transaction: CommittedTransaction | null): void {
    if (transaction) {
      if (transaction.xid === this.#lastSchemaXid) return;
      this.#lastSchemaXid = transaction.xid;
      this.#schemaVisible = Promise.all([this.#schemaVisible, this.#options.awaitVisible(new Set([transaction.xid]))]);
    }
    this.#schemaChanges++;
    this.#reloadCatalog();
    this.#push({ kind: "step", run: () => void this.#reportLapsed(), keepsSubscribers: true });
  }

  async #reportLapsed(): Promise<void> {
    await this.#upToDate;
    if (!this.#isClosed) await this.#publicationWatch.check();
  }

  #reloadCatalog(): void {
    this.#upToDate = this.#schemaVisible
      .then(() => {
        this.#options.claims.forget();
        return this.#options.catalog.reload();
      })
      .catch((error: unknown) => {
        this.#options.log.warn(
          { err: error },
          "the catalogue could not be reloaded: changes may be checked with an outdated one",
        );
      });
  }

  #push(entry: FeedEntry): void {
    this.#entries.push(entry);
    const isReady = "kind" in entry || this.#entries.length >= this.#batchLimit || this.#isFull;
    if (isReady && !this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#entries.length > 0 && !this.#isClosed) {
      // This collects the entries that arrive in one turn. A subscriber that a step has added receives the entries after the step.
      await turn();
      const entries = this.#entries.splice(0, this.#batchLength());
      if (this.#entries.length < MAX_QUEUED_CHANGES / 2) {
        this.#bytes = 0;
        this.#capacity?.resolve();
        this.#capacity = null;
      }
      await this.#deliver(entries).catch((error: unknown) => this.#fail(error));
    }
    this.#isRunning = false;
  }

  /** Returns the length of a batch: whole transactions if that is not too much, and nothing after a step that changes the subscribers. */
  #batchLength(): number {
    const step = this.#entries.findIndex((entry) => isStep(entry) && !entry.keepsSubscribers);
    const end = step < 0 ? this.#entries.findLastIndex((entry) => "kind" in entry) : step;
    return end < 0 ? this.#batchLimit : Math.min(this.#batchLimit, end + 1);
  }

  get #batchLimit(): number {
    return Math.max(MIN_BATCH, Math.min(MAX_BATCH, Math.floor(MAX_BATCH_DELIVERIES / this.#active.size)));
  }

  async #deliver(entries: readonly FeedEntry[]): Promise<void> {
    const gaps = this.#gaps;
    this.#abandonedFrom = null;
    const changes = entries.filter((entry): entry is PendingChange => !("kind" in entry));
    const deliveries =
      changes.length > 0 ? await this.#report.expect(() => this.#checkChanges(changes), LATE_MS) : NO_DELIVERIES;
    const delivered: PendingChange[] = [];
    const end = Promise.withResolvers<StreamPosition>();
    const delayed = this.#startFilters(deliveries, { changes, delivered, end: end.promise });
    for (const entry of entries) {
      // Positions from before a gap do not apply to the subscribers after it.
      if ((this.#gaps !== gaps && !isStep(entry)) || this.#isAbandoned(entry)) continue;
      const slowOutboxes = this.#deliverEntry(entry, { deliveries, delayed, delivered });
      if (slowOutboxes.length > 0) await this.#pacer.wait(slowOutboxes);
    }
    end.resolve(this.#deliveredTo);
    await this.#pacer.wait([...this.#active].map(({ outbox }) => outbox));
    await this.#backlogs.pace();
  }

  #isAbandoned(entry: FeedEntry): boolean {
    if (this.#abandonedFrom === null || isStep(entry)) return false;
    const { commitLsn } = "kind" in entry ? entry.position : entry.transaction;
    return commitLsn >= this.#abandonedFrom;
  }

  /** Starts to evaluate filters. Returns the subscribers who are sent these changes later: after their filters, and after their backlog. */
  #startFilters(
    deliveries: DeliveriesByRelation,
    { changes, delivered, end }: DeliveryRound,
  ): ReadonlySet<ChangeSubscriber> {
    const isActive = (subscriber: ChangeSubscriber) => this.#active.has(subscriber);
    const delayed = new Map<ChangeSubscriber, Promise<void>[]>();
    for (const subscriber of this.#active) if (this.#backlogs.has(subscriber)) delayed.set(subscriber, []);
    for (const delivery of deliveries.values()) {
      for (const [subscriber, filtered] of delivery.filter(this.#options.filters, isActive)) {
        delayed.set(subscriber, [...(delayed.get(subscriber) ?? []), ...filtered]);
      }
    }
    if (delayed.size === 0) return NO_SUBSCRIBERS;
    const bytes = changes.reduce((sum, pending) => sum + changeBytes(pending), 0);
    for (const [subscriber, filtered] of delayed) {
      if (!isActive(subscriber)) continue;
      this.#backlogs.add(subscriber, this.#deliveredTo, {
        ready: Promise.all([end, ...filtered]).then(([position]) => position),
        deliver: () => this.#deliverBacklog(delivered, subscriber, deliveries),
        changes: changes.length,
        bytes,
      });
    }
    return new Set(delayed.keys());
  }

  /** Sends one subscriber the changes that others were sent before. */
  async #deliverBacklog(
    changes: readonly PendingChange[],
    subscriber: ChangeSubscriber,
    deliveries: DeliveriesByRelation,
  ): Promise<void> {
    const { outbox } = subscriber;
    for (const pending of changes) {
      if (!this.#active.has(subscriber)) return;
      if (isAfter(changePosition(pending), subscriber.position))
        deliveries.get(pending.change.relation)?.deliverFiltered(pending, subscriber);
      if (outbox.needsPacing) await this.#pacer.wait([outbox]);
    }
  }

  /** Delivers one entry. Returns the outboxes that should be waited for. */
  #deliverEntry(entry: FeedEntry, { deliveries, delayed, delivered }: DeliveryRun): readonly Outbox[] {
    if ("kind" in entry) {
      if (entry.kind === "step") entry.run();
      else this.#deliveredTo = entry.position;
      return [];
    }
    const position = changePosition(entry);
    if (!isAfter(position, this.#deliveredTo)) return [];
    const isRecipient = (subscriber: ChangeSubscriber) =>
      this.#active.has(subscriber) && !delayed.has(subscriber) && isAfter(position, subscriber.position);
    const slowOutboxes = deliveries.get(entry.change.relation)?.deliver(entry, isRecipient);
    delivered.push(entry);
    this.#deliveredTo = position;
    return slowOutboxes ?? [];
  }

  #fail(error: unknown): void {
    this.#options.log.error({ err: error }, "changes could not be delivered");
    for (const subscriber of [...this.#active]) subscriber.reportGap("they could not be delivered");
  }
}
