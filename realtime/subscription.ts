import type { Caller } from "#accounts/identity";
import { assignBindingIds, type Binding } from "./changes/binding.ts";
import type { ChangeFeeds } from "./changes/feeds.ts";
import { type ChangeSubscriber, endOfTransaction, formatResumeToken, parseResumeToken } from "./changes/subscriber.ts";
import {
  type BindingRequest,
  ChannelError,
  type JoinRequest,
  type ProtocolVersion,
  stringifyValue,
} from "./protocol/messages.ts";
import type { Outbox } from "./protocol/outbox.ts";

type SubscriptionOptions = {
  readonly topic: string;
  readonly version: ProtocolVersion;
  readonly outbox: Outbox;
  readonly request: JoinRequest;
  /** Reports to the client that changes may have been missed. */
  readonly reportGap: (reason: string) => void;
};

/** The change stream, as channels use it. */
type ChannelFeeds = Pick<
  ChangeFeeds,
  "addListener" | "opened" | "remove" | "replace" | "resume" | "resumePointOf" | "subscribe"
>;

export type SubscriptionDependencies = {
  readonly feeds: ChannelFeeds;
  /** Makes a reader that resolves the bindings of a caller on a socket; null for one that is invalid or not permitted. */
  readonly bindingReaderFor: (
    caller: Caller,
    outbox: Outbox,
  ) => (request: BindingRequest, id: number) => Promise<Binding | null>;
  /** True if a filter of the binding failed for that socket a moment ago. */
  readonly isSuspended: (outbox: Outbox, binding: Binding) => boolean;
};
type SubscriptionState = { readonly status: "ok" | "error"; readonly message: string };

/** The time limit of a join, less than the ten seconds after which the client gives up. */
const SUBSCRIBE_TIMEOUT_MS = 8_000;
/** The time for which a channel without bindings waits for the messages of other gateways. */
const OPEN_TIMEOUT_MS = 2_000;

/** The table changes that one channel receives, with the claims of its current token. */
export class Subscription {
  readonly #dependencies: SubscriptionDependencies;
  readonly #options: SubscriptionOptions;
  #subscriber: ChangeSubscriber | null = null;
  /** The subscriber of a new token, until all checks use its claims. */
  #successor: ChangeSubscriber | null = null;
  #isEnded = false;

  constructor(dependencies: SubscriptionDependencies, options: SubscriptionOptions) {
    this.#dependencies = dependencies;
    this.#options = options;
  }

  /** The position of the last change; null without bindings. */
  get resumeToken(): string | null {
    return this.#subscriber && formatResumeToken(this.#dependencies.feeds.resumePointOf(this.#subscriber));
  }

  /** Null without bindings. */
  get state(): SubscriptionState | null {
    const { bindings } = this.#options.request;
    if (!this.#subscriber) return null;
    const isComplete = this.#subscriber.bindings.length === bindings.length;
    return isComplete
      ? { status: "ok", message: "Subscribed to PostgreSQL" }
      : { status: "error", message: unableToSubscribe(bindings) };
  }

  /** Resolves when no change of its bindings is missed any more; throws if the join is rejected. */
  async start(caller: Caller): Promise<void> {
    const { bindings, waitMs, resume } = this.#options.request;
    const { feeds } = this.#dependencies;
    if (bindings.length === 0) {
      await withTimeout(OPEN_TIMEOUT_MS, feeds.opened()).catch(() => {});
      return;
    }
    const subscriber = await this.#makeSubscriber(caller);
    if (subscriber.bindings.length < bindings.length && waitMs !== null) {
      throw new ChannelError("RealtimeDisabledForConfiguration", unableToSubscribe(bindings));
    }
    this.#subscriber = subscriber;
    if (resume !== null) return;
    const result = await withTimeout(waitMs ?? SUBSCRIBE_TIMEOUT_MS, feeds.subscribe(subscriber)).catch(
      (error: unknown) => {
        throw new ChannelError(
          "RealtimeDisabledForConfiguration",
          error instanceof Error ? error.message : String(error),
        );
      },
    );
    if (result === TIMED_OUT) {
      throw new ChannelError(
        "PostgresChangesSubscribeTimeout",
        "The change stream has not reached the start of the subscription yet; join again.",
      );
    }
  }

  /** Sends missed changes. Must be called after the reply to the join. */
  resume(): void {
    if (this.#subscriber && this.#options.request.resume !== null && !this.#isEnded)
      this.#dependencies.feeds.resume(this.#subscriber);
  }

  /** Resolves when all checks use the claims of this caller. */
  async updateCaller(caller: Caller): Promise<void> {
    const old = this.#subscriber;
    if (!old) return;
    const successor = await this.#makeSubscriber(caller);
    if (this.#isEnded) return;
    this.#successor = successor;
    await this.#dependencies.feeds.replace(old, successor);
    // Until now the old one may have been behind the stream, and the client resumes from there.
    this.#subscriber = successor;
    this.#successor = null;
  }

  end(): void {
    this.#isEnded = true;
    for (const subscriber of [this.#subscriber, this.#successor])
      if (subscriber) this.#dependencies.feeds.remove(subscriber);
  }

  async #makeSubscriber(caller: Caller): Promise<ChangeSubscriber> {
    const { topic, version, outbox, request, reportGap } = this.#options;
    const ids = assignBindingIds(request.bindings);
    const { bindingReaderFor, isSuspended } = this.#dependencies;
    const resolve = bindingReaderFor(caller, outbox);
    const resumePoint = request.resume === null ? null : parseResumeToken(request.resume);
    const bindings = await Promise.all(request.bindings.map((binding, at) => resolve(binding, ids[at]!)));
    return {
      caller,
      bindings: bindings.filter((binding): binding is Binding => binding !== null && !isSuspended(outbox, binding)),
      version,
      topic,
      outbox,
      position: resumePoint?.position ?? endOfTransaction(0n),
      history: resumePoint?.history ?? null,
      reportGap,
    };
  }
}

function unableToSubscribe(bindings: JoinRequest["bindings"]): string {
  const descriptions = bindings.map((binding) =>
    Object.entries(binding)
      .map(([name, value]) => `${name}: ${stringifyValue(value)}`)
      .join(", "),
  );
  return `Unable to subscribe to changes with given parameters. Please check Realtime is enabled for the given connect parameters: [${descriptions.join("; ")}]`;
}

const TIMED_OUT = Symbol("too late");

async function withTimeout<Result>(milliseconds: number, work: Promise<Result>): Promise<Result | typeof TIMED_OUT> {
  const { promise, resolve } = Promise.withResolvers<typeof TIMED_OUT>();
  const timer = setTimeout(() => resolve(TIMED_OUT), milliseconds);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
