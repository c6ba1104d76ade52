import type { Caller } from "../engine/caller/caller.ts";
import { type Broadcast, type BroadcastPush, parseBroadcastPush } from "./broadcast-frame.ts";
import { earliest, formatPosition } from "./changes/position.ts";
import { Channel, type Line } from "./channel.ts";
import { readJoinRequest } from "./join-request.ts";
import type { Outbox } from "./outbox.ts";
import { type Envelope, isObject, type Message, parseMessage, spellMessage, type Version } from "./protocol.ts";
import { expired, hasPassed, Refusal, reasonOf, tokenRefusal } from "./refusal.ts";
import type { ChannelServices } from "./services.ts";
import { socketFrame } from "./socket-frame.ts";

const OVERWHELMED = 1013;
const UNAUTHORIZED = 4401;

/** What a connection needs of its socket. */
export type Peer = {
  readonly version: Version;
  readonly outbox: Outbox;
  close(code: number, reason: string): void;
};

/** One client: the channels that it has joined, and what it says. Knows no socket and no SQL. */
export class Connection {
  readonly #services: ChannelServices;
  readonly #peer: Peer;
  readonly #apiKey: string | null;
  readonly #channels = new Map<string, Channel>();
  /** What is done about each topic is done in the order in which it was said. */
  readonly #lines = new Map<string, Promise<void>>();
  /** How many joins are being looked at. */
  #joining = 0;
  #isGone = false;

  constructor(services: ChannelServices, peer: Peer, apiKey: string | null) {
    this.#services = services;
    this.#peer = peer;
    this.#apiKey = apiKey;
  }

  get channels(): number {
    return this.#channels.size;
  }

  take(data: string | Buffer): Promise<void> {
    if (typeof data !== "string") {
      const push = this.#peer.version === "2.0.0" ? parseBroadcastPush(data) : null;
      return push ? this.#inLine(push.topic, () => this.#broadcast(push, push.broadcast)) : Promise.resolve();
    }
    const message = parseMessage(data, this.#peer.version);
    if (!message) return Promise.resolve();
    if (message.topic === "phoenix") return Promise.resolve(this.#beat(message));
    return this.#inLine(message.topic, () => this.#hear(message));
  }

  /** Ends what was begun with credentials that are good no longer. */
  look(): void {
    this.#examine(null, (refusal) => {
      for (const channel of [...this.#channels.values()]) channel.end(refusal);
      this.#peer.close(UNAUTHORIZED, "Unauthorized");
    });
    for (const channel of this.#channels.values()) {
      if (channel.token !== null) this.#examine(channel.token, (refusal) => channel.end(refusal));
    }
  }

  /** It reads more slowly than things happen, and is told that it has missed some. */
  overwhelmed(): void {
    this.#peer.close(OVERWHELMED, "More has happened than was read: join again, and read again what you show");
  }

  /** The socket is gone. */
  gone(): void {
    this.#isGone = true;
    for (const channel of [...this.#channels.values()]) channel.gone();
  }

  async #hear(message: Message): Promise<void> {
    const channel = this.#channels.get(message.topic);
    if (message.event === "phx_join") return this.#join(message);
    if (message.event === "phx_leave") {
      this.#reply(message, "ok");
      return channel?.close();
    }
    if (!channel) return this.#reply(message, "error", { reason: "unmatched topic" });
    switch (message.event) {
      case "access_token":
        return channel.renew(message.payload);
      case "presence":
        return this.#present(message, channel);
      case "broadcast":
        return this.#broadcast(message, readBroadcast(message.payload));
    }
  }

  async #join(message: Message): Promise<void> {
    const { topic, ref } = message;
    this.#channels.get(topic)?.close();
    try {
      if (this.#channels.size + this.#joining >= this.#services.mostChannels) {
        throw new Refusal("ChannelRateLimitReached", "Too many channels");
      }
      const { version, outbox } = this.#peer;
      const line: Line = { version, outbox, identify: (token) => this.#identify(token) };
      const request = readJoinRequest(message.payload);
      const onEnd = () => this.#channels.delete(topic);
      this.#joining++;
      const channel = await Channel.open(this.#services, { line, topic, joinRef: ref, request, onEnd }).finally(() => {
        this.#joining--;
      });
      if (this.#isGone) return channel.gone();
      this.#channels.set(topic, channel);
      channel.begin((response) => this.#reply(message, "ok", response));
    } catch (error) {
      this.#services.log.debug({ err: error }, "a channel was refused");
      this.#reply(message, "error", { reason: reasonOf(error) });
    }
  }

  async #present(message: Message, channel: Channel): Promise<void> {
    try {
      await channel.present(message.payload);
      this.#reply(message, "ok");
    } catch (error) {
      this.#reply(message, "error", { reason: reasonOf(error) });
    }
  }

  async #broadcast(push: Message | BroadcastPush, broadcast: Broadcast | null): Promise<void> {
    const channel = this.#channels.get(push.topic);
    if (!channel) return this.#reply(push, "error", { reason: "unmatched topic" });
    if (!broadcast) return;
    const { acknowledges } = await channel.broadcast(broadcast);
    if (acknowledges) this.#reply(push, "ok");
  }

  /** Says how far the client has been told, so that one which has heard nothing can go on from there too. */
  #beat(message: Message): void {
    if (message.event !== "heartbeat") return;
    const position = earliest([...this.#channels.values()].flatMap((channel) => channel.position ?? []));
    this.#reply(message, "ok", position ? { position: formatPosition(position) } : {});
  }

  /** By a token, or by the key that the socket was opened with. */
  async #identify(token: string | null): Promise<Caller> {
    try {
      return stillGood(await this.#ask(token));
    } catch (error) {
      throw tokenRefusal(error, token ?? this.#apiKey ?? "");
    }
  }

  /** As a rule the answer is known at once, and thousands of sockets are looked at in a moment. */
  #examine(token: string | null, refuse: (refusal: Refusal) => void): void {
    const fail = (error: unknown) => {
      const refusal = tokenRefusal(error, token ?? this.#apiKey ?? "");
      // What cannot be found out now, while the database is away perhaps, is no reason.
      if (refusal instanceof Refusal) refuse(refusal);
      else this.#services.log.debug({ err: error }, "an account could not be looked at");
    };
    try {
      const caller = this.#ask(token);
      if (caller instanceof Promise) caller.then(stillGood).catch(fail);
      else stillGood(caller);
    } catch (error) {
      fail(error);
    }
  }

  #ask(token: string | null): Caller | Promise<Caller> {
    return this.#services.callers().identify({ authorization: null, apiKey: token ?? this.#apiKey });
  }

  #inLine(topic: string, work: () => Promise<void> | undefined): Promise<void> {
    const done = (this.#lines.get(topic) ?? Promise.resolve()).then(work);
    const settled = done.catch(() => {});
    this.#lines.set(topic, settled);
    void settled.then(() => {
      if (this.#lines.get(topic) === settled) this.#lines.delete(topic);
    });
    return done;
  }

  #reply({ joinRef, ref, topic }: Envelope, status: "ok" | "error", response: object = {}): void {
    const { version, outbox } = this.#peer;
    const payload = JSON.stringify({ status, response });
    outbox.send(socketFrame("text", spellMessage(version, { joinRef, ref, topic, event: "phx_reply" }, payload)));
  }
}

function stillGood(caller: Caller): Caller {
  if (caller.expiresAt !== null && hasPassed(caller.expiresAt)) throw expired(caller.expiresAt);
  return caller;
}

/** `{"type":"broadcast","event":"hi","payload":{…}}` */
function readBroadcast(written: unknown): Broadcast | null {
  if (!isObject(written) || typeof written.event !== "string") return null;
  return { event: written.event, encoding: "json", payload: Buffer.from(JSON.stringify(written.payload ?? {})) };
}
