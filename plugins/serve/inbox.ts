import type { GrafastSubscriber } from "postgraphile/grafast";
import type { RowEvent } from "../subscription-topic.ts";

/** A bulk insert of this many rows reaches a subscriber that reads; one more, and it must read anew. An event that waits takes 8 bytes. */
const MOST_WAITING = 10_000;
/** How many events may be on their way through a plan, before their results are taken. Grafast would take all there are. */
const MOST_UNDERWAY = 16;

type Topics = Record<string, RowEvent>;
type Step = IteratorResult<RowEvent, undefined>;
const OVER: Step = { done: true, value: undefined };

/** `gap`: notifications may have been lost. `overflow`: more has happened than the subscriber has read, and the rest is dropped. */
export type Loss = "gap" | "overflow";

/** What has happened since one subscription began, and has not been delivered to it. */
export class Inbox implements GrafastSubscriber<Topics> {
  /** Called when there is a loss to tell. */
  onLoss: () => void = () => {};
  readonly #join: (topic: string, inbox: Inbox) => void;
  readonly #leave: (inbox: Inbox) => void;
  #waiting: RowEvent[] = [];
  /** Of `#waiting`: shifting a long array costs more than counting. */
  #taken = 0;
  #underway = 0;
  #asked: ((step: Step) => void) | null = null;
  #loss: Loss | null = null;
  #isOver = false;

  constructor(join: (topic: string, inbox: Inbox) => void, leave: (inbox: Inbox) => void) {
    this.#join = join;
    this.#leave = leave;
  }

  subscribe<Topic extends keyof Topics>(topic: Topic): AsyncIterableIterator<RowEvent> {
    this.#join(topic, this);
    const events: AsyncIterableIterator<RowEvent> = {
      [Symbol.asyncIterator]: () => events,
      next: () => this.#next(),
      return: async () => this.#end(),
      throw: async () => this.#end(),
    };
    return events;
  }

  put(event: RowEvent): void {
    if (this.#isOver || this.#loss === "overflow") return;
    if (this.#waiting.length - this.#taken >= MOST_WAITING) {
      this.#waiting = [];
      this.#taken = 0;
      this.lose("overflow");
      return;
    }
    this.#waiting.push(event);
    this.#serve();
  }

  lose(loss: Loss): void {
    if (this.#loss !== "overflow") this.#loss = loss;
    this.onLoss();
  }

  takeLoss(): Loss | null {
    const loss = this.#loss;
    if (loss === "gap") this.#loss = null;
    return loss;
  }

  /** The result of one event has left the plan. */
  delivered(): void {
    this.#underway--;
    this.#serve();
  }

  close(): void {
    this.#end();
  }

  #next(): Promise<Step> {
    if (this.#isOver) return Promise.resolve(OVER);
    return new Promise((resolve) => {
      this.#asked = resolve;
      this.#serve();
    });
  }

  #serve(): void {
    if (!this.#asked || this.#taken === this.#waiting.length || this.#underway >= MOST_UNDERWAY) return;
    const event = this.#waiting[this.#taken++]!;
    if (this.#taken === this.#waiting.length) {
      this.#waiting = [];
      this.#taken = 0;
    }
    this.#underway++;
    this.#answer({ done: false, value: event });
  }

  #answer(step: Step): void {
    const asked = this.#asked;
    this.#asked = null;
    asked?.(step);
  }

  #end(): Step {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#waiting = [];
      this.#leave(this);
      this.#answer(OVER);
    }
    return OVER;
  }
}
