import type { Caller } from "../engine/caller/caller.ts";
import { type Binding, bindingIds } from "./changes/binding.ts";
import { behind, formatBookmark, parseBookmark } from "./changes/position.ts";
import type { Subscriber } from "./changes/subscriber.ts";
import type { JoinRequest } from "./join-request.ts";
import type { Outbox } from "./outbox.ts";
import { spellWord, type Version } from "./protocol.ts";
import { Refusal } from "./refusal.ts";
import type { ChannelServices } from "./services.ts";

type Terms = {
  readonly topic: string;
  readonly version: Version;
  readonly outbox: Outbox;
  readonly request: JoinRequest;
  /** Changes may have been missed. */
  readonly lose: (reason: string) => void;
};

type SubscriptionServices = Pick<ChannelServices, "feeds" | "bindingReader" | "isBarred">;
export type SubscriptionState = { readonly status: "ok" | "error"; readonly message: string };

/** Less than the ten seconds after which the client gives up. */
const STAND_MS = 8_000;
/** For a channel that asks for no changes, hearing the other gateways is worth a short wait. */
const HEAR_MS = 2_000;

/** What one channel is told of changes, by the claims of the moment. */
export class Subscription {
  readonly #services: SubscriptionServices;
  readonly #terms: Terms;
  #subscriber: Subscriber | null = null;
  #isOver = false;

  constructor(services: SubscriptionServices, terms: Terms) {
    this.#services = services;
    this.#terms = terms;
  }

  /** How far it has been told; null where nothing was asked for. */
  get bookmark(): string | null {
    return this.#subscriber && formatBookmark(this.#services.feeds.bookmarkOf(this.#subscriber));
  }

  /** Null where nothing was asked for. */
  get state(): SubscriptionState | null {
    const { bindings } = this.#terms.request;
    if (!this.#subscriber) return null;
    const isWhole = this.#subscriber.bindings.length === bindings.length;
    return isWhole
      ? { status: "ok", message: "Subscribed to PostgreSQL" }
      : { status: "error", message: unableToSubscribe(bindings) };
  }

  /** Resolves when nothing is missed any more of what was asked for; refuses by throwing. */
  async begin(caller: Caller): Promise<void> {
    const { bindings, waitMs, resume } = this.#terms.request;
    const { feeds } = this.#services;
    if (bindings.length === 0) {
      await within(HEAR_MS, feeds.opened()).catch(() => {});
      return;
    }
    const subscriber = await this.#makeSubscriber(caller);
    if (subscriber.bindings.length < bindings.length && waitMs !== null) {
      throw new Refusal("RealtimeDisabledForConfiguration", unableToSubscribe(bindings));
    }
    this.#subscriber = subscriber;
    if (resume !== null) return;
    const standing = await within(waitMs ?? STAND_MS, feeds.subscribe(subscriber)).catch((error: unknown) => {
      throw new Refusal("RealtimeDisabledForConfiguration", error instanceof Error ? error.message : String(error));
    });
    if (standing === TOO_LATE) {
      throw new Refusal(
        "PostgresChangesSubscribeTimeout",
        "The stream of changes has not come so far yet; join again.",
      );
    }
  }

  /** To be called when the join has been answered: what was missed comes from here on. */
  resume(): void {
    if (this.#subscriber && this.#terms.request.resume !== null && !this.#isOver)
      this.#services.feeds.resume(this.#subscriber);
  }

  /** Resolves when all is judged by the claims of this caller, and nothing by those from before. */
  async renew(caller: Caller): Promise<void> {
    const old = this.#subscriber;
    if (!old) return;
    const successor = await this.#makeSubscriber(caller);
    if (this.#isOver) return;
    this.#subscriber = successor;
    await this.#services.feeds.replace(old, successor);
  }

  end(): void {
    this.#isOver = true;
    if (this.#subscriber) this.#services.feeds.remove(this.#subscriber);
  }

  async #makeSubscriber(caller: Caller): Promise<Subscriber> {
    const { topic, version, outbox, request, lose } = this.#terms;
    const ids = bindingIds(request.bindings);
    const { bindingReader, isBarred } = this.#services;
    const resolve = bindingReader(caller, outbox);
    const bookmark = request.resume === null ? null : parseBookmark(request.resume);
    const bindings = await Promise.all(request.bindings.map((binding, at) => resolve(binding, ids[at]!)));
    return {
      caller,
      bindings: bindings.filter((binding): binding is Binding => binding !== null && !isBarred(outbox, binding)),
      version,
      topic,
      outbox,
      position: bookmark?.position ?? behind(0n),
      history: bookmark?.history ?? null,
      lose,
    };
  }
}

function unableToSubscribe(bindings: JoinRequest["bindings"]): string {
  const asked = bindings.map((binding) =>
    Object.entries(binding)
      .map(([name, value]) => `${name}: ${spellWord(value)}`)
      .join(", "),
  );
  return `Unable to subscribe to changes with given parameters. Please check Realtime is enabled for the given connect parameters: [${asked.join("; ")}]`;
}

const TOO_LATE = Symbol("too late");

async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result | typeof TOO_LATE> {
  const { promise, resolve } = Promise.withResolvers<typeof TOO_LATE>();
  const timer = setTimeout(() => resolve(TOO_LATE), milliseconds);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
