import { setTimeout as sleep } from "node:timers/promises";
import { toHttpError } from "#http";
import { type LogicalMessage, PositionGoneError, validUntil } from "#live/stream";
import { ChangeFeed, type FeedDependencies } from "./feed.ts";
import { type ChangeSubscriber, earliestPosition, isAfter, type ResumePoint, replayStart } from "./subscriber.ts";

/** Clients that resume at about the same time are replayed together. */
const REPLAY_GATHER_MS = 50;
const HANDOVER_POLL_MS = 20;
/** The time in which a refused stream is not requested again. */
const REFUSAL_CACHE_MS = 5_000;
const DIFFERENT_HISTORY = "the position is from another database, or from a timeline that was abandoned";

type FeedEvents = {
  /** Handles a message of the stream, which waits for it. */
  readonly onMessage: (message: LogicalMessage) => void | Promise<void>;
  /** Called when the stream starts or is refused, and when messages may have been missed. */
  readonly onStart: () => void;
};

/** The live feed, which is open while there are listeners, and replay feeds for clients that resume. */
export class ChangeFeeds {
  readonly #dependencies: FeedDependencies;
  readonly #events: FeedEvents;
  readonly #replays = new Set<ChangeFeed>();
  #live: ChangeFeed | null = null;
  #listeners = 0;
  #returning: ChangeSubscriber[] = [];
  #refusal: { readonly error: unknown; readonly until: number } | null = null;
  #isClosed = false;

  constructor(dependencies: FeedDependencies, events: FeedEvents) {
    this.#dependencies = dependencies;
    this.#events = events;
  }

  /** Keeps the live feed open until the returned function is called. */
  addListener(): () => void {
    this.#listeners++;
    return () => {
      this.#listeners--;
      if (this.#listeners === 0) this.#closeLiveFeed();
    };
  }

  /** Resolves when messages of other gateways are received; rejects if that is impossible. */
  async opened(): Promise<void> {
    await this.#openLiveFeed();
  }

  async subscribe(subscriber: ChangeSubscriber): Promise<void> {
    const feed = await this.#openLiveFeed();
    await feed.subscribe(subscriber);
  }

  /** Delivers what was committed since the subscriber's position, then live changes; or reports that the position is no longer available. */
  resume(subscriber: ChangeSubscriber): void {
    if (this.#returning.length === 0) setTimeout(() => this.#replay(), REPLAY_GATHER_MS);
    this.#returning.push(subscriber);
  }

  async replace(old: ChangeSubscriber, successor: ChangeSubscriber): Promise<void> {
    if (this.#returning.includes(old)) {
      this.#returning = this.#returning.map((each) => (each === old ? successor : each));
      return;
    }
    const feed = [...this.#replays].find((replay) => replay.has(old)) ?? this.#liveFeed();
    await feed.replace(old, successor);
  }

  remove(subscriber: ChangeSubscriber): void {
    this.#returning = this.#returning.filter((each) => each !== subscriber);
    for (const feed of [...this.#replays, this.#live]) feed?.remove(subscriber);
  }

  /** Returns the position up to which the subscriber was sent changes. */
  resumePointOf(subscriber: ChangeSubscriber): ResumePoint {
    const feed = [...this.#replays, this.#live].find((each) => each?.has(subscriber));
    return feed
      ? { position: feed.positionOf(subscriber), history: feed.history }
      : { position: subscriber.position, history: subscriber.history ?? "" };
  }

  close(): void {
    this.#isClosed = true;
    for (const feed of this.#replays) feed.close();
    this.#live?.close();
  }

  #liveFeed(): ChangeFeed {
    if (this.#live) return this.#live;
    const { onMessage, onStart } = this.#events;
    this.#live = new ChangeFeed({ ...this.#dependencies, since: null, onMessage, onGap: onStart });
    // If the stream is refused, there are still the other workers of this service.
    this.#live.opened().then(onStart, onStart);
    return this.#live;
  }

  async #openLiveFeed(): Promise<ChangeFeed> {
    if (this.#refusal && performance.now() < this.#refusal.until) throw this.#refusal.error;
    const feed = this.#liveFeed();
    try {
      await feed.opened();
    } catch (error) {
      if (this.#live === feed) {
        // The stream may become available later.
        this.#closeLiveFeed();
        this.#refusal = { error, until: performance.now() + REFUSAL_CACHE_MS };
      }
      throw error;
    }
    feed.assertAvailable();
    return feed;
  }

  /** Closes the live feed. The replication stream under it stays open for a while. */
  #closeLiveFeed(): void {
    this.#live?.close();
    this.#live = null;
  }

  async #replay(): Promise<void> {
    const failure = await this.opened().then(() => null, toHttpError);
    const returning = this.#returning;
    this.#returning = [];
    const { history } = this.#dependencies.changes.state();
    const isUnknown = ({ history: from, position }: ChangeSubscriber) =>
      failure !== null || history === null || position.commitLsn >= validUntil(history, from ?? "");
    const subscribers = returning.filter((each) => !isUnknown(each));
    for (const subscriber of returning.filter(isUnknown)) subscriber.reportGap(failure?.message ?? DIFFERENT_HISTORY);
    await this.#replayTo(subscribers, history?.id ?? "");
  }

  /** Replays to all who resume together; those whose positions are no longer retained do not keep it from the others. */
  async #replayTo(subscribers: readonly ChangeSubscriber[], history: string): Promise<void> {
    const position = earliestPosition(subscribers.map((each) => each.position));
    if (!position || this.#isClosed) return;
    const feed = new ChangeFeed({ ...this.#dependencies, since: { position, history } });
    let retained: readonly ChangeSubscriber[] = [];
    this.#replays.add(feed);
    for (const subscriber of subscribers) feed.addFromReplay(subscriber);
    try {
      await feed.opened();
      await this.#handOver(feed);
    } catch (error) {
      const remaining = feed.removeAll();
      retained = remaining.filter((each) => isRetained(each, error));
      for (const subscriber of remaining)
        if (!isRetained(subscriber, error)) subscriber.reportGap(toHttpError(error).message);
    }
    this.#replays.delete(feed);
    feed.close();
    await this.#replayTo(retained, history);
  }

  /** Moves the subscribers to the live feed at a moment when it has delivered nothing that the replay has not. */
  async #handOver(feed: ChangeFeed): Promise<void> {
    for (;;) {
      const live = this.#liveFeed();
      const { position } = feed;
      if (feed.isEmpty || this.#isClosed) return;
      live.assertAvailable();
      if (feed.isIdle && !isAfter(live.deliveredTo, position)) {
        for (const subscriber of feed.removeAll()) {
          subscriber.position = position;
          live.addFromReplay(subscriber);
        }
        return;
      }
      await sleep(HANDOVER_POLL_MS);
    }
  }
}

/** True if the position of another subscriber was refused, and this one's is still available. */
function isRetained({ position, history }: ChangeSubscriber, error: unknown): boolean {
  if (!(error instanceof PositionGoneError) || error.earliest === null) return false;
  return replayStart({ position, history: history ?? "" }).lsn + 1n >= error.earliest;
}
