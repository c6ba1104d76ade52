import type { Listener } from "../../engine/listen.ts";
import type { Logger } from "../../engine/log.ts";
import { topicsOf } from "../subscription-topic.ts";
import { type AskGiven, EventCount } from "./event-count.ts";
import { EventLease, type LeaseQuestions } from "./event-lease.ts";
import { Inbox } from "./inbox.ts";
import { parseRowEvent } from "./row-event.ts";

/** Where triggers tell what changed. */
const CHANNEL = "graphql";
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

export type EventsOptions = {
  readonly listener: Listener;
  readonly askGiven: AskGiven;
  readonly askLease: LeaseQuestions;
  readonly log: Pick<Logger, "info" | "warn">;
};

/** One LISTEN for the process, handed on in the process to those whom it concerns. */
export class Events {
  readonly #topics = new Map<string, Set<Inbox>>();
  readonly #topicsOf = new Map<Inbox, string[]>();
  readonly #listening: Promise<() => void>;
  readonly #stopHearingOfGaps: () => void;
  readonly #count: EventCount;
  readonly #lease: EventLease;
  readonly #log: EventsOptions["log"];
  /** One question at a time. */
  #asking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ listener, askGiven, askLease, log }: EventsOptions) {
    this.#count = new EventCount(askGiven);
    this.#lease = new EventLease({
      ask: askLease,
      onDoubt: () => this.#bridgeGap(),
      onMissed: () => this.#tellLoss([...this.#topicsOf.keys()]),
    });
    this.#log = log;
    this.#listening = listener.listen(CHANNEL, (payload) => this.#hear(payload));
    // Whoever subscribes is told of a failure; nobody else waits for it.
    this.#listening.catch(() => {});
    this.#stopHearingOfGaps = listener.onGap(() => this.#bridgeGap());
  }

  /** For one subscription; what happens from now on arrives. */
  async open(): Promise<Inbox> {
    await this.#listening;
    await this.#lease.hold();
    // What happened while nobody subscribed was missed by nobody.
    if (this.#topicsOf.size === 0) this.#ask(async () => void (await this.#count.mayHaveMissed()));
    const inbox: Inbox = new Inbox(
      (topic) => this.#join(topic, inbox),
      () => this.#leave(inbox),
    );
    this.#topicsOf.set(inbox, []);
    return inbox;
  }

  state(): { subscriptions: number; topics: number } {
    return { subscriptions: this.#topicsOf.size, topics: this.#topics.size };
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#stopHearingOfGaps();
    for (const inbox of this.#topicsOf.keys()) inbox.close();
    this.#listening.then((stopListening) => stopListening()).catch(() => {});
  }

  #join(topic: string, inbox: Inbox): void {
    this.#topicsOf.get(inbox)?.push(topic);
    const inboxes = this.#topics.get(topic) ?? new Set();
    this.#topics.set(topic, inboxes.add(inbox));
  }

  #leave(inbox: Inbox): void {
    for (const topic of this.#topicsOf.get(inbox) ?? []) {
      const inboxes = this.#topics.get(topic);
      inboxes?.delete(inbox);
      if (inboxes?.size === 0) this.#topics.delete(topic);
    }
    this.#topicsOf.delete(inbox);
    this.#lease.release();
  }

  #hear(payload: string): void {
    const event = parseRowEvent(payload);
    if (!event) {
      this.#log.warn({ channel: CHANNEL }, "a notification that tells no change of a row");
      return;
    }
    this.#count.hear(event.n);
    for (const topic of topicsOf(event)) for (const inbox of this.#topics.get(topic) ?? []) inbox.put(event);
  }

  /** Tells those who were there before, unless it is certain that nothing was lost. */
  #bridgeGap(): void {
    const present = [...this.#topicsOf.keys()];
    this.#ask(async () => {
      // Where that fails, so will the question: then nothing is certain.
      await this.#lease.renew().catch(() => {});
      if (await this.#count.mayHaveMissed()) this.#tellLoss(present);
    });
  }

  #tellLoss(inboxes: readonly Inbox[]): void {
    this.#log.info({ subscriptions: inboxes.length }, "events may have been missed");
    for (const inbox of inboxes) inbox.lose("gap");
  }

  /** Tries until a moment comes in which nothing is under way. */
  #learnCount(pause: number): void {
    if (this.#isClosed || !this.#count.isUnsure) return;
    this.#ask(async () => void (await this.#count.mayHaveMissed()), Math.min(2 * pause, LONGEST_PAUSE_MS));
  }

  #ask(question: () => Promise<void>, pause = FIRST_PAUSE_MS): void {
    this.#asking = this.#asking.then(question).then(() => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#learnCount(pause), pause).unref();
    });
  }
}
