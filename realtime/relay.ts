import { randomUUID } from "node:crypto";
import type { Changes, Message } from "../engine/changes/changes.ts";
import { isJsonObject } from "../engine/json-object.ts";
import type { Logger } from "../engine/log.ts";

/** What gateways tell each other, and SQL tells them, by way of the stream: JSON objects that say their kind. */
export type Said = Readonly<Record<string, unknown>> & { readonly kind: string };

/** `from` is null for what SQL said. A promise is awaited before more is heard. */
export type Hear = (said: Said, from: string | null) => void | Promise<void>;

type RelayOptions = {
  readonly changes: Pick<Changes, "emit" | "state">;
  readonly hear: Hear;
  readonly log: Pick<Logger, "warn" | "error">;
};

/** What `realtime.send` uses too. */
const PREFIX = "realtime";
/** So many messages, or characters of them, wait at most before whoever says more waits. */
const CROWD = 500;
const CROWD_LENGTH = 8 * 2 ** 20;

/** What goes together next: texts of JSON. */
type Batch = { readonly said: string[]; length: number; readonly sent: Promise<void> };

/** Carries what is said here to the other gateways of the database. What is said while a message is sent goes with the next one. */
export class Relay {
  readonly gateway = randomUUID();
  readonly #options: RelayOptions;
  #last: Promise<void> = Promise.resolve();
  #next: Batch | null = null;
  #isAlone = false;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Resolves when it is on its way. That it cannot be is said in the log. */
  say(said: Said): Promise<void> {
    this.#next ??= this.#begin();
    const text = JSON.stringify(said);
    this.#next.said.push(text);
    this.#next.length += text.length;
    return this.#next.sent;
  }

  /** More is said than can be sent: whoever says more had better wait until it is on its way. */
  get isCrowded(): boolean {
    return this.#next !== null && (this.#next.said.length >= CROWD || this.#next.length >= CROWD_LENGTH);
  }

  /** Resolves when all that was said is on its way. */
  settled(): Promise<void> {
    return this.#next?.sent ?? this.#last;
  }

  hear({ prefix, content }: Message): void | Promise<void> {
    if (prefix !== PREFIX) return;
    const { gateway, said } = parse(content) ?? {};
    if (gateway === this.gateway || !Array.isArray(said)) return;
    return this.#hearEach(said.filter(isSaid), typeof gateway === "string" ? gateway : null);
  }

  #hearEach(said: readonly Said[], from: string | null): void | Promise<void> {
    for (const [at, each] of said.entries()) {
      const heard = this.#options.hear(each, from);
      if (heard) return heard.then(() => this.#hearEach(said.slice(at + 1), from));
    }
  }

  #begin(): Batch {
    const said: string[] = [];
    const sent = this.#last.then(() => {
      this.#next = null;
      return this.#send(said);
    });
    this.#last = sent;
    return { said, length: 0, sent };
  }

  async #send(said: readonly string[]): Promise<void> {
    const { changes, log } = this.#options;
    const { status, reason } = changes.state();
    if (status === "refused") return this.#stayAlone(reason);
    try {
      await changes.emit(PREFIX, Buffer.from(`{"gateway":"${this.gateway}","said":[${said.join(",")}]}`));
    } catch (error) {
      log.error({ err: error }, "other gateways could not be told of a broadcast or a presence");
    }
  }

  #stayAlone(reason: string | null): void {
    if (!this.#isAlone) this.#options.log.warn({ reason }, "broadcasts and presences stay within this process");
    this.#isAlone = true;
  }
}

function parse(content: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(content.toString());
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isSaid(value: unknown): value is Said {
  return isJsonObject(value) && typeof value.kind === "string";
}
