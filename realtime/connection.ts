import type { Caller } from "../engine/caller/caller.ts";
import { isJsonObject } from "../engine/json-object.ts";
import type { ByteQuota } from "../engine/memory/byte-quota.ts";
import type { Broadcast, BroadcastPush } from "./broadcast-frame.ts";
import { Channel, type Line } from "./channel.ts";
import { type Frame, FrameReader } from "./frame-reader.ts";
import { readJoinRequest } from "./join-request.ts";
import type { Outbox } from "./outbox.ts";
import { type Envelope, type Message, payloadText, spellMessage, type Version } from "./protocol.ts";
import { Rate } from "./rate.ts";
import { expired, hasPassed, malformed, Refusal, reasonOf, tokenRefusal } from "./refusal.ts";
import type { ChannelServices } from "./services.ts";
import { socketFrame } from "./socket-frame.ts";

const OVERWHELMED = 1013;
const UNAUTHORIZED = 4401;
/** In a message that has none of these, numbers are spelled by JavaScript as they were: no long ones, `1.0`, `1e400` or `-0`. */
const SPELLED_OTHERWISE = /\d{16}|\d\.\d|\d[eE]|-0/;

const TOO_MANY_CHANNELS = new Refusal("ChannelRateLimitReached", "Too many channels");
const TOO_MANY_JOINS = new Refusal("ClientJoinRateLimitReached", "Too many joins per second");
const TOO_MANY_PRESENCES = new Refusal("ClientPresenceRateLimitReached", "Client presence rate limit exceeded");
const FLOOD = new Refusal("MessagePerSecondRateLimitReached", "Too many messages per second");

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
  readonly #frames: FrameReader;
  readonly #messages: Rate;
  readonly #joins: Rate;
  readonly #presences: Rate;
  /** What its channels keep in memory. */
  readonly #retained: ByteQuota;
  readonly #keptPresences: ByteQuota;
  /** How many joins are being looked at. */
  #joining = 0;
  #isGone = false;

  constructor(services: ChannelServices, peer: Peer, apiKey: string | null) {
    this.#services = services;
    this.#peer = peer;
    this.#apiKey = apiKey;
    const { limits, memory } = services;
    this.#retained = memory.retainedOfSocket();
    this.#keptPresences = memory.presencesOfSocket();
    this.#frames = new FrameReader(peer.version);
    this.#messages = new Rate(limits.messagesPerSecond);
    this.#joins = new Rate(limits.joinsPerSecond);
    this.#presences = new Rate(limits.presencesPerSecond);
  }

  get channels(): number {
    return this.#channels.size;
  }

  /** How many of them are told of changes. */
  get subscriptions(): number {
    return [...this.#channels.values()].filter(({ hearsChanges }) => hearsChanges).length;
  }

  take(data: Buffer, isBinary: boolean): Promise<void> {
    return this.#frames.read(data, isBinary, this.#handle);
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
    this.gone();
  }

  /** The socket is gone. */
  gone(): void {
    this.#isGone = true;
    for (const channel of [...this.#channels.values()]) channel.gone();
  }

  readonly #handle = (frame: Frame): Promise<void> => {
    switch (frame.kind) {
      case "unfit":
        return this.#inLine(frame.envelope.topic, () => this.#refuse(frame.envelope, frame.refusal));
      case "broadcast":
        return this.#admit(frame.push, () => this.#broadcast(frame.push, frame.push.broadcast));
      case "message": {
        const { message, text } = frame;
        return this.#admit(message, () =>
          message.topic === "phoenix" ? this.#beat(message) : this.#hear(message, text),
        );
      }
    }
  };

  #admit(message: Envelope, work: () => Promise<void> | void): Promise<void> {
    const isFlood = this.#messages.take(1) > 0;
    return this.#inLine(message.topic, isFlood ? () => this.#limit(message, FLOOD) : work);
  }

  async #hear(message: Message, text: string): Promise<void> {
    const channel = this.#channels.get(message.topic);
    if (message.event === "phx_join") return this.#join(message);
    if (message.event === "phx_leave") {
      // Said of an earlier one, which ended when this one was joined.
      if (channel && message.joinRef !== null && message.joinRef !== channel.joinRef) return;
      this.#reply(message, "ok");
      return channel?.close();
    }
    if (!channel) return this.#reply(message, "error", { reason: "unmatched topic" });
    switch (message.event) {
      case "access_token":
        return this.#joins.take(1) > 0 ? this.#limit(message, TOO_MANY_JOINS) : channel.renew(message.payload);
      case "presence":
        return this.#present(message, channel);
      case "broadcast":
        return this.#broadcast(message, readBroadcast(message.payload, exactly(text, this.#peer.version)));
    }
  }

  async #join(message: Message): Promise<void> {
    const { topic, ref, joinRef } = message;
    const { limits } = this.#services;
    this.#channels.get(topic)?.close();
    if (this.#joins.take(1) > 0) return this.#limit(message, TOO_MANY_JOINS);
    if (this.#channels.size + this.#joining >= limits.channels) return this.#limit(message, TOO_MANY_CHANNELS);
    try {
      const { version, outbox } = this.#peer;
      const identify = (token: string | null) => this.#identify(token);
      const line: Line = { version, outbox, retained: this.#retained, presences: this.#keptPresences, identify };
      const request = readJoinRequest(message.payload);
      if (limits.bindings > 0 && request.bindings.length > limits.bindings) throw tooManyBindings(limits.bindings);
      const joining = { line, topic, joinRef: joinRef ?? ref, request, onEnd: () => this.#channels.delete(topic) };
      this.#joining++;
      const channel = await Channel.open(this.#services, joining).finally(() => {
        this.#joining--;
      });
      if (this.#isGone) return channel.gone();
      this.#channels.set(topic, channel);
      channel.begin((response) => this.#reply(message, "ok", response));
    } catch (error) {
      this.#services.tally.refusals++;
      this.#services.log.debug({ err: error }, "a channel was refused");
      this.#refuse(message, error);
    }
  }

  async #present(message: Message, channel: Channel): Promise<void> {
    if (this.#presences.take(1) > 0) return this.#limit(message, TOO_MANY_PRESENCES);
    try {
      await channel.present(message.payload);
      this.#reply(message, "ok");
    } catch (error) {
      this.#refuse(message, error);
    }
  }

  async #broadcast(push: Message | BroadcastPush, broadcast: Broadcast | null): Promise<void> {
    const channel = this.#channels.get(push.topic);
    if (!channel) return this.#reply(push, "error", { reason: "unmatched topic" });
    if (!broadcast) return;
    try {
      await channel.broadcast(broadcast);
      if (channel.acknowledges) this.#reply(push, "ok");
    } catch (error) {
      if (!(error instanceof Refusal)) this.#services.log.warn({ err: error }, "a broadcast could not be passed on");
      if (channel.acknowledges) this.#refuse(push, error);
    }
  }

  /** Says how far the client has been told, so that one which has heard nothing can go on from there too. */
  #beat(message: Message): void {
    if (message.event !== "heartbeat") return;
    const bookmarks = new Set<string>();
    for (const { bookmark } of this.#channels.values()) if (bookmark) bookmarks.add(bookmark);
    const [position] = bookmarks;
    // While one channel is told of the past, there is none that is true of all.
    this.#reply(message, "ok", position !== undefined && bookmarks.size === 1 ? { position } : {});
  }

  /** It asks for more than it may: its channel, if it has one, is over. */
  #limit(message: Envelope, refusal: Refusal): void {
    this.#services.tally.limited++;
    this.#channels.get(message.topic)?.end(refusal);
    this.#refuse(message, refusal);
  }

  #refuse(message: Envelope, error: unknown): void {
    this.#reply(message, "error", { reason: reasonOf(error) });
  }

  /** By a token, or by the key that the socket was opened with. */
  async #identify(token: string | null): Promise<Caller> {
    // It is not the same as none, for which the key stands.
    if (token === "") throw malformed();
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

  #inLine(topic: string, work: () => Promise<void> | void): Promise<void> {
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

function tooManyBindings(most: number): Refusal {
  return new Refusal("InvalidJoinPayload", `A channel can ask for ${most} postgres_changes at most`);
}

/** Other languages tell `1.0` from `1` and have longer numbers than JavaScript, which would pass on others than it was told. */
function exactly(text: string, version: Version): string | null {
  return SPELLED_OTHERWISE.test(text) ? payloadText(text, version) : null;
}

/** `{"type":"broadcast","event":"hi","payload":{…}}`, or whatever a client makes of it. */
function readBroadcast(written: unknown, exact: string | null): Broadcast | null {
  if (!isJsonObject(written)) return null;
  const { type, event = "", payload, ...rest } = written;
  // Clients compare it with texts, and fail at anything else.
  if (typeof event !== "string") return null;
  if (exact !== null) return { event, encoding: "whole", payload: Buffer.from(exact) };
  const isUsual = type === "broadcast" && event !== "" && payload !== undefined && Object.keys(rest).length === 0;
  return isUsual
    ? { event, encoding: "json", payload: Buffer.from(JSON.stringify(payload)) }
    : { event, encoding: "whole", payload: Buffer.from(JSON.stringify(written)) };
}
