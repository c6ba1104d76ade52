import { randomUUID } from "node:crypto";
import type { LogicalMessage, ReplicationStream } from "#live/stream";
import { NO_PEERS, type PeerWorkers } from "#runtime/concurrency";
import { isJsonObject } from "#runtime/json";
import type { Logger } from "#runtime/log";

/** A message between gateways, or from SQL, through the replication stream: a JSON object with its kind. */
export type GatewayMessage = Readonly<Record<string, unknown>> & { readonly kind: string };

/** Receives messages; `from` is null for messages from SQL. No further message is handled before the promise resolves. */
type ReceiveGatewayMessage = (messages: GatewayMessage, from: string | null) => void | Promise<void>;

type GatewayRelayOptions = {
  readonly changes: Pick<ReplicationStream, "emit" | "state">;
  readonly receive: ReceiveGatewayMessage;
  readonly peers?: PeerWorkers;
  readonly log: Pick<Logger, "warn" | "error">;
};

/** The prefix of messages, which `realtime.send` uses too. */
const MESSAGE_PREFIX = "realtime";
/** The limits of queued messages and characters above which senders should wait. */
const MAX_QUEUED_MESSAGES = 500;
const MAX_QUEUED_CHARACTERS = 8 * 2 ** 20;

/** The JSON texts that are sent together next. */
type RelayBatch = { readonly messages: string[]; length: number; readonly sent: Promise<void> };

/**
 * Sends messages to the other gateways of the database; if the replication stream is refused, to the other workers of
 * this service. Messages that arrive while a batch is sent go with the next one.
 */
export class GatewayRelay {
  readonly gateway = randomUUID();
  readonly #options: GatewayRelayOptions;
  #lastSent: Promise<void> = Promise.resolve();
  #nextBatch: RelayBatch | null = null;
  readonly #peers: PeerWorkers;
  #isIsolated = false;
  #received: Promise<void> = Promise.resolve();

  constructor(options: GatewayRelayOptions) {
    this.#options = options;
    this.#peers = options.peers ?? NO_PEERS;
    this.#peers.subscribe("realtime", (content) => {
      this.#received = this.#received.then(() => this.#receiveContent(content as Buffer));
    });
  }

  /** Sends a message. Resolves when it was sent. A failure is logged. */
  send(messages: GatewayMessage): Promise<void> {
    this.#nextBatch ??= this.#startBatch();
    const text = JSON.stringify(messages);
    this.#nextBatch.messages.push(text);
    this.#nextBatch.length += text.length;
    return this.#nextBatch.sent;
  }

  /** True if more is queued than can be sent: senders should wait until it was sent. */
  get isCongested(): boolean {
    return (
      this.#nextBatch !== null &&
      (this.#nextBatch.messages.length >= MAX_QUEUED_MESSAGES || this.#nextBatch.length >= MAX_QUEUED_CHARACTERS)
    );
  }

  /** Resolves when everything queued was sent. */
  flushed(): Promise<void> {
    return this.#nextBatch?.sent ?? this.#lastSent;
  }

  receive({ prefix, content }: LogicalMessage): void | Promise<void> {
    if (prefix === MESSAGE_PREFIX) return this.#receiveContent(content);
  }

  #receiveContent(content: Buffer): void | Promise<void> {
    const { gateway, said: messages } = parseContent(content) ?? {};
    if (gateway === this.gateway || !Array.isArray(messages)) return;
    return this.#receiveEach(messages.filter(isGatewayMessage), typeof gateway === "string" ? gateway : null);
  }

  #receiveEach(messages: readonly GatewayMessage[], from: string | null): void | Promise<void> {
    for (const [at, each] of messages.entries()) {
      const handled = this.#options.receive(each, from);
      if (handled) return handled.then(() => this.#receiveEach(messages.slice(at + 1), from));
    }
  }

  #startBatch(): RelayBatch {
    const messages: string[] = [];
    const sent = this.#lastSent.then(() => {
      this.#nextBatch = null;
      return this.#emit(messages);
    });
    this.#lastSent = sent;
    return { messages, length: 0, sent };
  }

  async #emit(messages: readonly string[]): Promise<void> {
    const { changes, log } = this.#options;
    const { status, reason } = changes.state();
    const content = Buffer.from(`{"gateway":"${this.gateway}","said":[${messages.join(",")}]}`);
    if (status === "refused") {
      this.#reportIsolated(reason);
      return this.#peers.publish("realtime", content);
    }
    try {
      await changes.emit(MESSAGE_PREFIX, content);
    } catch (error) {
      log.error({ err: error }, "a broadcast or presence could not be sent to other gateways");
    }
  }

  #reportIsolated(reason: string | null): void {
    if (!this.#isIsolated)
      this.#options.log.warn({ reason }, "broadcasts and presences are not shared with other gateways");
    this.#isIsolated = true;
  }
}

function parseContent(content: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(content.toString());
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isGatewayMessage(value: unknown): value is GatewayMessage {
  return isJsonObject(value) && typeof value.kind === "string";
}
