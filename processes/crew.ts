import { setTimeout as sleep } from "node:timers/promises";
import { delayBefore } from "../engine/delay-before.ts";
import type { Logger } from "../engine/log.ts";
import type { Operable } from "../rest-gateway/admin.ts";
import { Member } from "./member.ts";
import type { Asked, Beginning } from "./orders.ts";

export type CrewOptions = Pick<Beginning, "config" | "postgres"> & {
  readonly size: number;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** Who takes another one's place answers all that it did, GraphQL of thousands of tables too. */
const IN_PLACE: Pick<Beginning, "schemaPatienceMs"> = { schemaPatienceMs: 600_000 };
/** A worker that has served this long had started well: its end is a new story. */
const SETTLED_AFTER_MS = 60_000;

/** So many workers, each replaced when it ends unasked, or all of them in turn. */
export class Crew {
  readonly #options: CrewOptions;
  readonly #members = new Set<Member>();
  readonly #stopping = new AbortController();
  #replacing: Promise<void> | null = null;
  #failures = 0;
  /** Workers in a row that ended before they served. */
  #failedStarts = 0;

  constructor(options: CrewOptions) {
    this.#options = options;
  }

  /** Resolves with their address when all serve. The first one makes what is made once, and tells what is wrong once. */
  async start(): Promise<string> {
    const url = await this.#add().serving;
    const others = Array.from({ length: this.#options.size - 1 }, () => this.#add().serving);
    await Promise.all(others);
    return url;
  }

  /** Each leaves when its successor serves. When one cannot start, those that are left stay. */
  replaceAll(): Promise<void> {
    this.#replacing ??= this.#replaceEach().finally(() => {
      this.#replacing = null;
    });
    return this.#replacing;
  }

  /** What each of them says that serves. */
  async ask<W extends Asked>(what: W): Promise<Awaited<ReturnType<Operable[W]>>[]> {
    const answers = await Promise.all(this.#serving.map((member) => member.ask(what)));
    return answers.filter((answer) => answer !== undefined);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#members].map((member) => member.leave({})));
    await this.#replacing?.catch(() => {});
  }

  #add(terms: Pick<Beginning, "schemaPatienceMs"> = {}): Member {
    const { config, postgres } = this.#options;
    const member = new Member({ config, postgres, ...terms });
    this.#members.add(member);
    member.serving
      .then(() => {
        this.#failedStarts = 0;
        this.#tellShortage();
      })
      .catch(() => {});
    void member.ended.then((how) => this.#onEnd(member, how));
    return member;
  }

  async #replaceEach(): Promise<void> {
    const { log } = this.#options;
    for (const member of this.#serving) {
      if (this.#stopping.signal.aborted) return;
      const successor = this.#add(IN_PLACE);
      await successor.serving;
      log.info({ worker: successor.id, instead: member.id }, "a worker takes another one's place");
      await member.leave({ othersStay: true });
      this.#tellShortage();
    }
  }

  async #onEnd(member: Member, how: string): Promise<void> {
    this.#members.delete(member);
    if (member.isLeaving || this.#stopping.signal.aborted) return;
    const pause = this.#pauseAfter(member);
    this.#options.log.error({ worker: member.id, how, replacedInMs: pause }, "a worker ended unasked");
    this.#tellShortage();
    await sleep(pause, undefined, { signal: this.#stopping.signal }).catch(() => {});
    // Has one more than there should be for a while, and comes to those who have ended too.
    await this.#replacing?.catch(() => {});
    if (!this.#stopping.signal.aborted && this.#present < this.#options.size) this.#add();
  }

  #pauseAfter({ startedAt, isServing }: Member): number {
    if (performance.now() - startedAt > SETTLED_AFTER_MS) this.#failures = 0;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures++);
    if (!isServing) this.#failedStarts++;
    // Every worker that is there serves, or is about to.
    if (this.#present > 0) return pause;
    return this.#failedStarts === 0 ? 0 : Math.round(delayBefore(this.#failedStarts));
  }

  get #serving(): Member[] {
    return [...this.#members].filter(({ isServing, isLeaving }) => isServing && !isLeaving);
  }

  /** Those who leave have been replaced already. */
  get #present(): number {
    return [...this.#members].filter(({ isLeaving }) => !isLeaving).length;
  }

  #tellShortage(): void {
    const { size } = this.#options;
    const serving = this.#serving.length;
    const fault = serving < size ? `${serving} of ${size} processes serve.` : null;
    for (const member of this.#members) member.tell({ kind: "shortage", fault });
  }
}
