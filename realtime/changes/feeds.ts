import { setTimeout as sleep } from "node:timers/promises";
import type { Message } from "../../engine/changes/changes.ts";
import { toApiError } from "../../engine/errors.ts";
import { Feed, type FeedServices } from "./feed.ts";
import { type Bookmark, earliest, isAfter } from "./position.ts";
import type { Subscriber } from "./subscriber.ts";

/** Whoever comes back at about the same time reads the past together. */
const GATHER_MS = 50;
const LOOK_MS = 20;
/** For so long a stream that was refused is not asked for again. */
const REFUSED_MS = 5_000;
const ANOTHER_HISTORY = "what was told last is of another database, or of a time that was undone";

type FeedsHooks = {
  /** Told of what is said by way of the stream, which waits for it. */
  readonly hear: (message: Message) => void | Promise<void>;
  /** Called when it begins to hear, and when it may have missed something. */
  readonly begun: () => void;
};

/** The feed of the present, which is open while anybody is there, and those of the past for who was away. */
export class Feeds {
  readonly #services: FeedServices;
  readonly #hooks: FeedsHooks;
  readonly #replays = new Set<Feed>();
  #live: Feed | null = null;
  #guests = 0;
  #returning: Subscriber[] = [];
  #refusal: { readonly error: unknown; readonly until: number } | null = null;
  #isClosed = false;

  constructor(services: FeedServices, hooks: FeedsHooks) {
    this.#services = services;
    this.#hooks = hooks;
  }

  /** Somebody is there, and is to hear what others say; the answer says that they left. */
  enter(): () => void {
    this.#guests++;
    return () => {
      this.#guests--;
      if (this.#guests === 0) this.#rest();
    };
  }

  /** Resolves when what is said elsewhere is heard; rejects where that cannot be. */
  async opened(): Promise<void> {
    await this.#openPresent();
  }

  async subscribe(subscriber: Subscriber): Promise<void> {
    const feed = await this.#openPresent();
    await feed.subscribe(subscriber);
  }

  /** Tells what has happened since its position, and goes on from there; or that this is no longer known. */
  resume(subscriber: Subscriber): void {
    if (this.#returning.length === 0) setTimeout(() => this.#replay(), GATHER_MS);
    this.#returning.push(subscriber);
  }

  async replace(old: Subscriber, successor: Subscriber): Promise<void> {
    if (this.#returning.includes(old)) {
      this.#returning = this.#returning.map((each) => (each === old ? successor : each));
      return;
    }
    const feed = [...this.#replays].find((replay) => replay.has(old)) ?? this.#present();
    await feed.replace(old, successor);
  }

  remove(subscriber: Subscriber): void {
    this.#returning = this.#returning.filter((each) => each !== subscriber);
    for (const feed of [...this.#replays, this.#live]) feed?.remove(subscriber);
  }

  /** How far the subscriber has been told. */
  bookmarkOf(subscriber: Subscriber): Bookmark {
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

  #present(): Feed {
    if (this.#live) return this.#live;
    const { hear, begun } = this.#hooks;
    this.#live = new Feed({ ...this.#services, since: null, hear, missed: begun });
    this.#live.opened().then(begun, () => {});
    return this.#live;
  }

  async #openPresent(): Promise<Feed> {
    if (this.#refusal && performance.now() < this.#refusal.until) throw this.#refusal.error;
    const feed = this.#present();
    try {
      await feed.opened();
    } catch (error) {
      if (this.#live === feed) {
        // Where there was nothing to follow there may be after a while.
        this.#rest();
        this.#refusal = { error, until: performance.now() + REFUSED_MS };
      }
      throw error;
    }
    feed.assertOffered();
    return feed;
  }

  /** The stream itself goes on for a while. */
  #rest(): void {
    this.#live?.close();
    this.#live = null;
  }

  async #replay(): Promise<void> {
    const failure = await this.opened().then(() => null, toApiError);
    const returning = this.#returning;
    this.#returning = [];
    const { history } = this.#services.changes.state();
    const isStranger = (each: Subscriber) => failure !== null || each.history !== history;
    const subscribers = returning.filter((each) => !isStranger(each));
    for (const stranger of returning.filter(isStranger)) stranger.lose(failure?.message ?? ANOTHER_HISTORY);
    const since = earliest(subscribers.map(({ position }) => position));
    if (!since || this.#isClosed) return;
    const feed = new Feed({ ...this.#services, since });
    this.#replays.add(feed);
    for (const subscriber of subscribers) feed.adopt(subscriber);
    try {
      await feed.opened();
      await this.#handOver(feed);
    } catch (error) {
      for (const subscriber of feed.leave()) subscriber.lose(toApiError(error).message);
    }
    this.#replays.delete(feed);
    feed.close();
  }

  /** To the present, in a moment in which that has told nothing which the past has not. */
  async #handOver(feed: Feed): Promise<void> {
    for (;;) {
      const live = this.#present();
      const { position } = feed;
      if (feed.isEmpty || this.#isClosed) return;
      live.assertOffered();
      if (feed.isIdle && !isAfter(live.told, position)) {
        for (const subscriber of feed.leave()) {
          subscriber.position = position;
          live.adopt(subscriber);
        }
        return;
      }
      await sleep(LOOK_MS);
    }
  }
}
