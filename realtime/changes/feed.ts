import { randomUUID } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type {
  Change,
  Changes,
  Follower,
  Following,
  Gap,
  Message,
  Relation,
  Transaction,
} from "../../engine/changes/changes.ts";
import { unavailable } from "../../engine/errors.ts";
import type { Logger } from "../../engine/log.ts";
import { oneAtATime } from "../../engine/one-at-a-time.ts";
import type { Outbox } from "../outbox.ts";
import { concerns } from "./audience.ts";
import { type AudienceServices, type Audiences, makeAudiences } from "./audiences.ts";
import { Backlogs } from "./backlogs.ts";
import type { CheckVisibility } from "./check-visibility.ts";
import { Delivery, type Item } from "./delivery.ts";
import type { Filters } from "./filters.ts";
import { findLapsed } from "./lapsed.ts";
import { Pacer } from "./pacer.ts";
import { behind, isAfter, type Position, sinceOf } from "./position.ts";
import type { Subscriber } from "./subscriber.ts";
import type { AwaitVisible } from "./visible.ts";

export type FeedServices = AudienceServices & {
  readonly changes: Changes;
  readonly checkVisibility: CheckVisibility;
  readonly filters: Pick<Filters, "apply">;
  readonly awaitVisible: AwaitVisible;
  readonly log: Pick<Logger, "warn" | "error">;
};

type FeedOptions = FeedServices & {
  /** Where it begins; null: now. */
  readonly since: Position | null;
  /** What others have told by way of the stream, which waits for it. */
  readonly hear?: (message: Message) => void | Promise<void>;
  /** Called when that may have been missed. */
  readonly missed?: () => void;
};

/** Done in its turn, behind all that the stream had told before. */
type Step = { readonly kind: "step"; readonly run: () => void };
/** The end of a transaction. */
type Commit = { readonly kind: "commit"; readonly position: Position };
type Entry = Item | Step | Commit;

type Deliveries = ReadonlyMap<Relation, Delivery>;
/** Changes that are told together: all, those of them that were not told before, and how far everybody has been told then. */
type Round = { readonly items: readonly Item[]; readonly told: readonly Item[]; readonly end: Promise<Position> };
type Telling = { readonly deliveries: Deliveries; readonly later: ReadonlySet<Subscriber>; readonly told: Item[] };

const NO_DELIVERIES: Deliveries = new Map();
const NOBODY: ReadonlySet<Subscriber> = new Set();

/** How many changes are judged together, of which each subscriber may have its own view. */
const BATCH = 500;
const SMALLEST_BATCH = 20;
const MOST_VIEWS = 50_000;
/** How many may wait until the stream is made to wait. */
const MOST_WAITING = 2_000;
const MOST_WAITING_BYTES = 8 * 2 ** 20;
const MARK = "realtime:mark";
/** What the database says when its schema changes, ahead of the changes that are to be judged by it. */
const SCHEMA_CHANGED = "schema";

/** The changes of the stream from one place on, told to those who subscribe, in commit order. */
export class Feed {
  readonly #options: FeedOptions;
  readonly #following: Following;
  readonly #marks = new Map<string, () => void>();
  readonly #markTogether: (key: string) => Promise<void>;
  readonly #pacer = new Pacer();
  readonly #backlogs = new Backlogs();
  /** Whose tables are decoded, and who of them are told. */
  readonly #interested = new Set<Subscriber>();
  readonly #active = new Set<Subscriber>();
  readonly #audienceOf: Audiences;
  #entries: Entry[] = [];
  #bytes = 0;
  #room: PromiseWithResolvers<void> | null = null;
  /** Resolves when the catalogue is no older than what has been heard. */
  #upToDate: Promise<void> = Promise.resolve();
  /** Resolves when everybody can see how the schema was changed by what has been heard. */
  #seen: Promise<unknown> = Promise.resolve();
  /** The last transaction that changed the schema. */
  #changer: number | null = null;
  /** How often the schema has changed, as far as that was heard. */
  #schemaChanges = 0;
  #gaps = 0;
  #isRunning = false;
  #isClosed = false;
  #told: Position;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#audienceOf = makeAudiences(options);
    this.#told = options.since ?? behind(0n);
    this.#markTogether = oneAtATime(() => this.#mark());
    this.#following = options.changes.follow(this.#follower(), options.since ? sinceOf(options.since) : undefined);
    // Of what has happened to the schema before, nothing was heard.
    if (options.since) this.#catchUp();
    this.#following.from.then(() => this.#catchUp()).catch(() => {});
  }

  /** Resolves when nothing is missed any more; rejects with an ApiError where there is nothing to follow. */
  async opened(): Promise<void> {
    await this.#following.from;
  }

  /** Throws where the stream is refused after all, as where the publication is gone; it is taken up again by itself. */
  assertOffered(): void {
    const { status, reason } = this.#options.changes.state();
    if (status === "refused") throw unavailable(reason!);
  }

  get isEmpty(): boolean {
    return this.#interested.size === 0;
  }

  get isIdle(): boolean {
    return this.#entries.length === 0 && !this.#isRunning && this.#backlogs.isEmpty;
  }

  get told(): Position {
    return this.#told;
  }

  has(subscriber: Subscriber): boolean {
    return this.#interested.has(subscriber);
  }

  /** That in which positions have a meaning here. */
  get history(): string {
    return this.#options.changes.state().history ?? "";
  }

  /** How far everybody has been told, and that there is nothing to tell up to there. */
  get position(): Position {
    const { position } = this.#options.changes.state();
    return this.isIdle && position !== null && position > this.#told.commitLsn ? behind(position) : this.#told;
  }

  /** How far the subscriber has been told. */
  positionOf(subscriber: Subscriber): Position {
    return this.#backlogs.positionOf(subscriber) ?? this.position;
  }

  /** Begins with what is committed after this call, as far as the stream can know: resolves when it has come so far. */
  async subscribe(subscriber: Subscriber): Promise<void> {
    this.#interested.add(subscriber);
    try {
      await this.opened();
      await this.#markTogether("");
      // Those who are there were told of it; who comes behind that would wait in vain.
      this.assertOffered();
    } catch (error) {
      this.#interested.delete(subscriber);
      throw error;
    }
    if (this.#interested.has(subscriber)) this.#active.add(subscriber);
  }

  /** Goes on where the subscriber was told last. Only where nothing later was told here. */
  adopt(subscriber: Subscriber): void {
    this.#interested.add(subscriber);
    this.#active.add(subscriber);
  }

  /** The one takes the other's place between two changes. */
  replace(old: Subscriber, successor: Subscriber): Promise<void> {
    this.#interested.add(successor);
    return new Promise((resolve) => {
      const run = (): void => {
        if (this.#backlogs.has(old)) {
          void this.#backlogs.drained(old).then(() => (this.#isClosed ? run() : this.#push({ kind: "step", run })));
          return;
        }
        successor.position = old.position;
        if (this.#active.has(old) && this.#interested.has(successor)) this.#active.add(successor);
        this.remove(old);
        resolve();
      };
      this.#push({ kind: "step", run });
    });
  }

  remove(subscriber: Subscriber): void {
    this.#interested.delete(subscriber);
    this.#active.delete(subscriber);
    this.#backlogs.remove(subscriber);
  }

  /** All who were there. */
  leave(): readonly Subscriber[] {
    const subscribers = [...this.#interested];
    this.#interested.clear();
    this.#active.clear();
    this.#backlogs.clear();
    return subscribers;
  }

  close(): void {
    this.#isClosed = true;
    this.#following.close();
    const entries = this.#entries;
    this.#entries = [];
    // Whoever waits for a step would wait for ever.
    for (const entry of entries) if (isStep(entry)) entry.run();
    this.#room?.resolve();
    this.#backlogs.clear();
  }

  #follower(): Follower {
    return {
      wants: (relation) =>
        [...this.#interested].some(({ bindings }) => bindings.some((each) => concerns(each, relation))),
      change: (change, transaction) => this.#take(change, transaction),
      commit: ({ commitLsn }) => this.#push({ kind: "commit", position: behind(commitLsn) }),
      message: (message) => this.#hear(message),
      gap: (gap) => this.#lose(gap),
    };
  }

  #take(change: Change, transaction: Transaction): Promise<void> | undefined {
    if (change.kind === "TRUNCATE") return undefined;
    const item = { change, transaction };
    this.#bytes += bytesOf(item);
    this.#push(item);
    if (!this.#isFull) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  /** The stream waits then, so what is here must be told without the end of its transaction. */
  get #isFull(): boolean {
    return this.#entries.length >= MOST_WAITING || this.#bytes >= MOST_WAITING_BYTES;
  }

  #hear(message: Message): void | Promise<void> {
    if (message.prefix === SCHEMA_CHANGED) this.#followSchema(message.transaction);
    else if (message.prefix !== MARK) return this.#options.hear?.(message);
    else {
      const marked = this.#marks.get(message.content.toString());
      if (marked) this.#push({ kind: "step", run: marked });
    }
  }

  /** Sends a message to itself by way of the stream: what was committed before has arrived before it. */
  async #mark(): Promise<void> {
    this.assertOffered();
    const id = randomUUID();
    const marked = Promise.withResolvers<void>();
    this.#marks.set(id, marked.resolve);
    try {
      await this.#options.changes.emit(MARK, Buffer.from(id));
      await marked.promise;
    } finally {
      this.#marks.delete(id);
    }
  }

  #lose({ reason, until }: Gap): void {
    this.#gaps++;
    this.#told = behind(until);
    this.#entries = this.#entries.filter(isStep);
    this.#bytes = 0;
    this.#backlogs.clear();
    for (const subscriber of [...this.#active]) subscriber.lose(reason);
    // A mark may have been lost too.
    for (const marked of this.#marks.values()) marked();
    this.#catchUp();
    this.#options.missed?.();
  }

  /** Once for all that a transaction does: it is seen as a whole, which may be later than it is heard of. */
  #followSchema(transaction: Transaction | null): void {
    if (transaction) {
      if (transaction.xid === this.#changer) return;
      this.#changer = transaction.xid;
      this.#seen = Promise.all([this.#seen, this.#options.awaitVisible(new Set([transaction.xid]))]);
    }
    this.#schemaChanges++;
    this.#catchUp();
    this.#push({ kind: "step", run: () => void this.#dismiss() });
  }

  /** Those who would wait in vain from now on. */
  async #dismiss(): Promise<void> {
    await this.#upToDate;
    if (this.#isClosed) return;
    try {
      const lapsed = await findLapsed([...this.#interested], this.#options);
      for (const [subscriber, reason] of lapsed) if (this.#interested.has(subscriber)) subscriber.lose(reason);
    } catch (error) {
      this.#options.log.warn({ err: error }, "whether all that is asked for is still published was not found out");
    }
  }

  #catchUp(): void {
    this.#upToDate = this.#seen
      .then(() => {
        this.#options.claims.forget();
        return this.#options.catalog.reload();
      })
      .catch((error: unknown) => {
        this.#options.log.warn({ err: error }, "changes are judged by a catalogue that may be out of date");
      });
  }

  #push(entry: Entry): void {
    this.#entries.push(entry);
    const isReady = "kind" in entry || this.#entries.length >= this.#mostTogether || this.#isFull;
    if (isReady && !this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#entries.length > 0 && !this.#isClosed) {
      // All that happens at once comes together; and whom a step lets in is there for what comes behind it.
      await turn();
      const entries = this.#entries.splice(0, this.#batchLength());
      if (this.#entries.length < MOST_WAITING / 2) {
        this.#bytes = 0;
        this.#room?.resolve();
        this.#room = null;
      }
      await this.#tell(entries).catch((error: unknown) => this.#fail(error));
    }
    this.#isRunning = false;
  }

  /** Whole transactions, where that is not too much, and nothing behind a step. */
  #batchLength(): number {
    const step = this.#entries.findIndex(isStep);
    const end = step < 0 ? this.#entries.findLastIndex((entry) => "kind" in entry) : step;
    return end < 0 ? this.#mostTogether : Math.min(this.#mostTogether, end + 1);
  }

  get #mostTogether(): number {
    return Math.max(SMALLEST_BATCH, Math.min(BATCH, Math.floor(MOST_VIEWS / this.#active.size)));
  }

  async #tell(entries: readonly Entry[]): Promise<void> {
    const gaps = this.#gaps;
    const items = entries.filter((entry): entry is Item => !("kind" in entry));
    const deliveries = items.length > 0 ? await this.#check(items) : NO_DELIVERIES;
    const told: Item[] = [];
    const end = Promise.withResolvers<Position>();
    const later = this.#tellLater(deliveries, { items, told, end: end.promise });
    for (const entry of entries) {
      // What was told before a gap says nothing of how far those are told who come behind it.
      if (this.#gaps !== gaps && !isStep(entry)) continue;
      const due = this.#tellOne(entry, { deliveries, later, told });
      if (due.length > 0) await this.#pacer.wait(due);
    }
    end.resolve(this.#told);
    await this.#pacer.wait([...this.#active].map(({ outbox }) => outbox));
    await this.#backlogs.pace();
  }

  /** What each subscriber sees of the changes: once more where the schema has changed meanwhile, and with it who sees the same. */
  async #check(items: readonly Item[]): Promise<Deliveries> {
    for (;;) {
      const schemaChanges = this.#schemaChanges;
      await this.#upToDate;
      const deliveries = new Map<Relation, Delivery>();
      for (const [relation, own] of Map.groupBy(items, ({ change }) => change.relation)) {
        const audience = await this.#audienceOf(this.#active, relation);
        if (audience) deliveries.set(relation, new Delivery(own, audience, this.history));
      }
      const xids = new Set(items.map(({ transaction }) => transaction.xid));
      // First: a policy that reads other tables is to find there what the same transaction has written.
      if (deliveries.size > 0) await this.#options.awaitVisible(xids);
      await Promise.all([...deliveries.values()].map((delivery) => delivery.check(this.#options.checkVisibility)));
      if (schemaChanges === this.#schemaChanges) return deliveries;
    }
  }

  /** Begins to apply filters. Answers with those who are told behind that, and behind what they have still to be told. */
  #tellLater(deliveries: Deliveries, { items, told, end }: Round): ReadonlySet<Subscriber> {
    const isThere = (subscriber: Subscriber) => this.#active.has(subscriber);
    const later = new Map<Subscriber, Promise<void>[]>();
    for (const subscriber of this.#active) if (this.#backlogs.has(subscriber)) later.set(subscriber, []);
    for (const delivery of deliveries.values()) {
      for (const [subscriber, filtered] of delivery.filter(this.#options.filters, isThere)) {
        later.set(subscriber, [...(later.get(subscriber) ?? []), ...filtered]);
      }
    }
    if (later.size === 0) return NOBODY;
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
    for (const [subscriber, filtered] of later) {
      if (!isThere(subscriber)) continue;
      this.#backlogs.add(subscriber, this.#told, {
        ready: Promise.all([end, ...filtered]).then(([position]) => position),
        tell: () => this.#tellAll(told, subscriber, deliveries),
        changes: items.length,
        bytes,
      });
    }
    return new Set(later.keys());
  }

  /** Tells one of what others have been told before. */
  async #tellAll(items: readonly Item[], subscriber: Subscriber, deliveries: Deliveries): Promise<void> {
    const { outbox } = subscriber;
    for (const item of items) {
      if (!this.#active.has(subscriber)) return;
      if (isAfter(positionOf(item), subscriber.position))
        deliveries.get(item.change.relation)?.tellLater(item, subscriber);
      if (outbox.isDue) await this.#pacer.wait([outbox]);
    }
  }

  /** Answers with whom to wait for. */
  #tellOne(entry: Entry, { deliveries, later, told }: Telling): readonly Outbox[] {
    if ("kind" in entry) {
      if (entry.kind === "step") entry.run();
      else this.#told = entry.position;
      return [];
    }
    const position = positionOf(entry);
    if (!isAfter(position, this.#told)) return [];
    const isToldNow = (subscriber: Subscriber) =>
      this.#active.has(subscriber) && !later.has(subscriber) && isAfter(position, subscriber.position);
    const due = deliveries.get(entry.change.relation)?.tell(entry, isToldNow);
    told.push(entry);
    this.#told = position;
    return due ?? [];
  }

  #fail(error: unknown): void {
    this.#options.log.error({ err: error }, "changes could not be told");
    for (const subscriber of [...this.#active]) subscriber.lose("they could not be told");
  }
}

function positionOf({ transaction, change }: Item): Position {
  return { commitLsn: transaction.commitLsn, index: change.index };
}

function bytesOf({ change }: Item): number {
  return [...(change.new ?? []), ...(change.old ?? [])].reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
}

function isStep(entry: Entry): entry is Step {
  return "kind" in entry && entry.kind === "step";
}
