import { API_RESOURCE, type Caller, CredentialError, hasExpired } from "#accounts/identity";
import type { ByteQuota } from "#runtime";
import { isJsonObject } from "#runtime/json";
import { Channel, type ChannelDependencies, type ChannelSocket } from "./channel.ts";
import { RateLimiter } from "./protocol/client-limits.ts";
import { type ClientFrame, FrameReader } from "./protocol/frame-reader.ts";
import {
  type BroadcastMessage,
  type BroadcastPush,
  ChannelError,
  type ClientMessage,
  encodeMessage,
  errorReason,
  expiredToken,
  type MessageEnvelope,
  malformedToken,
  type ProtocolVersion,
  parseJoinRequest,
  sliceExactPayload,
  toTokenError,
} from "./protocol/messages.ts";
import { encodeSocketFrame, type Outbox } from "./protocol/outbox.ts";

const CLOSE_TRY_AGAIN_LATER = 1013;
const CLOSE_UNAUTHORIZED = 4401;
/** Numbers that JavaScript may not preserve: long ones, `1.0`, `1e400` or `-0`. A text without any of these is parsed exactly. */
const INEXACT_NUMBER = /\d{16}|\d\.\d|\d[eE]|-0/;

const TOO_MANY_CHANNELS = new ChannelError("ChannelRateLimitReached", "Too many channels");
const TOO_MANY_JOINS = new ChannelError("ClientJoinRateLimitReached", "Too many joins per second");
const TOO_MANY_PRESENCES = new ChannelError("ClientPresenceRateLimitReached", "Client presence rate limit exceeded");
const TOO_MANY_MESSAGES = new ChannelError("MessagePerSecondRateLimitReached", "Too many messages per second");

/** The part of its socket that a connection uses. */
type ConnectionSocket = {
  readonly version: ProtocolVersion;
  /** The caller who opened the socket, or its address if many use the same key. */
  readonly largeWorkOwner: string;
  readonly outbox: Outbox;
  close(code: number, reason: string): void;
};

/** One client: the channels that it has joined, and its messages. It knows no socket and no SQL. */
export class ChannelConnection {
  readonly #dependencies: ChannelDependencies;
  readonly #socket: ConnectionSocket;
  readonly #apiKey: string | null;
  readonly #channels = new Map<string, Channel>();
  /** The queue of each topic, whose messages are handled in order. */
  readonly #queuesByTopic = new Map<string, Promise<void>>();
  readonly #frameReader: FrameReader;
  readonly #messageRate: RateLimiter;
  readonly #joinRate: RateLimiter;
  readonly #presenceRate: RateLimiter;
  /** The memory that its channels use. */
  readonly #memoryQuota: ByteQuota;
  readonly #presenceQuota: ByteQuota;
  /** The number of joins in progress. */
  #pendingJoins = 0;
  #isClosed = false;

  constructor(dependencies: ChannelDependencies, socket: ConnectionSocket, apiKey: string | null) {
    this.#dependencies = dependencies;
    this.#socket = socket;
    this.#apiKey = apiKey;
    const { limits, memory } = dependencies;
    this.#memoryQuota = memory.retainedOfSocket();
    this.#presenceQuota = memory.presencesOfSocket();
    this.#frameReader = new FrameReader(socket.version, socket.largeWorkOwner);
    this.#messageRate = new RateLimiter(limits.messagesPerSecond);
    this.#joinRate = new RateLimiter(limits.joinsPerSecond);
    this.#presenceRate = new RateLimiter(limits.presencesPerSecond);
  }

  get channels(): number {
    return this.#channels.size;
  }

  /** The number of channels that receive changes. */
  get subscriptions(): number {
    return [...this.#channels.values()].filter(({ receivesChanges }) => receivesChanges).length;
  }

  receive(data: Buffer, isBinary: boolean): Promise<void> {
    return this.#frameReader.read(data, isBinary, this.#handleFrame);
  }

  /** Closes channels and the connection if their credentials are no longer valid. */
  checkCredentials(): void {
    this.#checkToken(null, (refusal) => {
      for (const channel of [...this.#channels.values()]) channel.endWithError(refusal);
      this.#socket.close(CLOSE_UNAUTHORIZED, "Unauthorized");
    });
    for (const channel of this.#channels.values()) {
      const refuse = (refusal: ChannelError) => channel.endWithError(refusal);
      if (channel.token !== null) this.#checkToken(channel.token, refuse);
      if (channel.caller.kind === "key") this.#checkKey(channel.caller, refuse);
    }
  }

  /** Disconnects a client that reads too slowly and has missed messages. */
  closeOverwhelmed(): void {
    this.#socket.close(CLOSE_TRY_AGAIN_LATER, "Messages were not read fast enough: join again and refetch");
    this.handleSocketClosed();
  }

  /** Ends the channels after the socket was closed. */
  handleSocketClosed(): void {
    this.#isClosed = true;
    for (const channel of [...this.#channels.values()]) channel.handleSocketClosed();
  }

  readonly #handleFrame = (frame: ClientFrame): Promise<void> => {
    switch (frame.kind) {
      case "unfit":
        return this.#enqueue(frame.envelope.topic, () => this.#replyError(frame.envelope, frame.refusal));
      case "broadcast":
        return this.#admit(frame.push, () => this.#broadcast(frame.push, frame.push.broadcast));
      case "message": {
        const { message, text } = frame;
        return this.#admit(message, () =>
          message.topic === "phoenix" ? this.#answerHeartbeat(message) : this.#handleMessage(message, text),
        );
      }
    }
  };

  #admit(message: MessageEnvelope, work: () => Promise<void> | void): Promise<void> {
    const isTooMany = this.#messageRate.take(1) > 0;
    return this.#enqueue(message.topic, isTooMany ? () => this.#rejectOverLimit(message, TOO_MANY_MESSAGES) : work);
  }

  async #handleMessage(message: ClientMessage, text: string): Promise<void> {
    const channel = this.#channels.get(message.topic);
    if (message.event === "phx_join") return this.#join(message);
    if (message.event === "phx_leave") {
      // The message belongs to an earlier join, which this one has replaced.
      if (channel && message.joinRef !== null && message.joinRef !== channel.joinRef) return;
      this.#reply(message, "ok");
      return channel?.close();
    }
    if (!channel) return this.#reply(message, "error", { reason: "unmatched topic" });
    switch (message.event) {
      case "access_token":
        return this.#joinRate.take(1) > 0
          ? this.#rejectOverLimit(message, TOO_MANY_JOINS)
          : channel.updateToken(message.payload);
      case "presence":
        return this.#handlePresence(message, channel);
      case "broadcast":
        return this.#broadcast(message, parseBroadcast(message.payload, exactPayload(text, this.#socket.version)));
    }
  }

  async #join(message: ClientMessage): Promise<void> {
    const { topic, ref, joinRef } = message;
    const { limits } = this.#dependencies;
    this.#channels.get(topic)?.close();
    if (this.#joinRate.take(1) > 0) return this.#rejectOverLimit(message, TOO_MANY_JOINS);
    if (this.#channels.size + this.#pendingJoins >= limits.channels)
      return this.#rejectOverLimit(message, TOO_MANY_CHANNELS);
    try {
      const { version, outbox } = this.#socket;
      const identify = (token: string | null) => this.#identify(token);
      const connection: ChannelSocket = {
        version,
        outbox,
        memoryQuota: this.#memoryQuota,
        presenceQuota: this.#presenceQuota,
        identify,
      };
      const request = parseJoinRequest(message.payload);
      if (limits.bindings > 0 && request.bindings.length > limits.bindings) throw tooManyBindings(limits.bindings);
      const join = {
        socket: connection,
        topic,
        joinRef: joinRef ?? ref,
        request,
        onEnd: () => this.#channels.delete(topic),
      };
      this.#pendingJoins++;
      const channel = await Channel.open(this.#dependencies, join).finally(() => {
        this.#pendingJoins--;
      });
      if (this.#isClosed) return channel.handleSocketClosed();
      this.#channels.set(topic, channel);
      channel.start((response) => this.#reply(message, "ok", response));
    } catch (error) {
      this.#dependencies.counters.refusals++;
      this.#dependencies.log.debug({ err: error }, "a join was rejected");
      this.#replyError(message, error);
    }
  }

  async #handlePresence(message: ClientMessage, channel: Channel): Promise<void> {
    if (this.#presenceRate.take(1) > 0) return this.#rejectOverLimit(message, TOO_MANY_PRESENCES);
    try {
      await channel.handlePresence(message.payload);
      this.#reply(message, "ok");
    } catch (error) {
      this.#replyError(message, error);
    }
  }

  async #broadcast(push: ClientMessage | BroadcastPush, broadcast: BroadcastMessage | null): Promise<void> {
    const channel = this.#channels.get(push.topic);
    if (!channel) return this.#reply(push, "error", { reason: "unmatched topic" });
    if (!broadcast) return;
    try {
      await channel.broadcast(broadcast);
      if (channel.acknowledgesBroadcasts) this.#reply(push, "ok");
    } catch (error) {
      if (!(error instanceof ChannelError))
        this.#dependencies.log.warn({ err: error }, "a broadcast could not be sent");
      if (channel.acknowledgesBroadcasts) this.#replyError(push, error);
    }
  }

  /** Answers a heartbeat with the position, so that a client without events can resume from there too. */
  #answerHeartbeat(message: ClientMessage): void {
    if (message.event !== "heartbeat") return;
    const tokens = new Set<string>();
    for (const { resumeToken } of this.#channels.values()) if (resumeToken) tokens.add(resumeToken);
    const [position] = tokens;
    // While a channel is replayed, no position applies to all channels.
    this.#reply(message, "ok", position !== undefined && tokens.size === 1 ? { position } : {});
  }

  /** Closes the channel of a client that has exceeded a limit. */
  #rejectOverLimit(message: MessageEnvelope, refusal: ChannelError): void {
    this.#dependencies.counters.limited++;
    this.#channels.get(message.topic)?.endWithError(refusal);
    this.#replyError(message, refusal);
  }

  #replyError(message: MessageEnvelope, error: unknown): void {
    this.#reply(message, "error", { reason: errorReason(error) });
  }

  /** Authenticates by the token, or by the API key that the socket was opened with. */
  async #identify(token: string | null): Promise<Caller> {
    // An empty token is invalid; without a token, the API key is used.
    if (token === "") throw malformedToken();
    try {
      return requireUnexpired(await this.#authenticate(token));
    } catch (error) {
      // The key of the socket is not used, because it could have been revoked.
      if (token !== null && token !== this.#apiKey && isUnknownKey(error)) throw malformedToken();
      throw toTokenError(error, token ?? this.#apiKey ?? "");
    }
  }

  /** Checks a token. Usually the result is cached, because thousands of sockets are checked at once. */
  #checkToken(token: string | null, refuse: (refusal: ChannelError) => void): void {
    const fail = (error: unknown) => {
      const refusal = toTokenError(error, token ?? this.#apiKey ?? "");
      // If an account cannot be checked now, for example while the database is unavailable, the channel stays open.
      if (refusal instanceof ChannelError) refuse(refusal);
      else this.#dependencies.log.debug({ err: error }, "an account could not be checked");
    };
    try {
      const caller = this.#authenticate(token);
      if (caller instanceof Promise) caller.then(requireUnexpired).catch(fail);
      else requireUnexpired(caller);
    } catch (error) {
      fail(error);
    }
  }

  /** An API key that another role or owner was given authenticates still, and its channels have the claims of before. */
  #checkKey({ claims }: Caller, refuse: (refusal: ChannelError) => void): void {
    Promise.resolve(this.#dependencies.authenticator().validateClaims(claims)).then(
      (rejection) => rejection && refuse(toTokenError(rejection, "") as ChannelError),
      (error: unknown) => this.#dependencies.log.debug({ err: error }, "an API key could not be checked"),
    );
  }

  #authenticate(token: string | null): Caller | Promise<Caller> {
    return this.#dependencies.authenticator().authenticate({
      authorization: null,
      apiKey: token ?? this.#apiKey,
      resource: API_RESOURCE,
    });
  }

  #enqueue(topic: string, work: () => Promise<void> | void): Promise<void> {
    const done = (this.#queuesByTopic.get(topic) ?? Promise.resolve()).then(work);
    const settled = done.catch(() => {});
    this.#queuesByTopic.set(topic, settled);
    void settled.then(() => {
      if (this.#queuesByTopic.get(topic) === settled) this.#queuesByTopic.delete(topic);
    });
    return done;
  }

  #reply({ joinRef, ref, topic }: MessageEnvelope, status: "ok" | "error", response: object = {}): void {
    const { version, outbox } = this.#socket;
    const payload = JSON.stringify({ status, response });
    outbox.send(
      encodeSocketFrame("text", encodeMessage(version, { joinRef, ref, topic, event: "phx_reply" }, payload)),
    );
  }
}

function isUnknownKey(error: unknown): boolean {
  return error instanceof CredentialError && error.reason === "apiKeyInvalid";
}

function requireUnexpired(caller: Caller): Caller {
  if (caller.expiresAt !== null && hasExpired(caller.expiresAt)) throw expiredToken(caller.expiresAt);
  return caller;
}

function tooManyBindings(max: number): ChannelError {
  return new ChannelError("InvalidJoinPayload", `A channel can have at most ${max} postgres_changes`);
}

/** Returns the unchanged text of the payload, since languages with other number types distinguish `1.0` from `1` and have longer numbers. */
function exactPayload(text: string, version: ProtocolVersion): string | null {
  return INEXACT_NUMBER.test(text) ? sliceExactPayload(text, version) : null;
}

/** Parses `{"type":"broadcast","event":"hi","payload":{…}}`, or a message of another form. */
function parseBroadcast(value: unknown, exact: string | null): BroadcastMessage | null {
  if (!isJsonObject(value)) return null;
  const { type, event = "", payload, ...rest } = value;
  // Clients fail at an event that is not a string.
  if (typeof event !== "string") return null;
  if (exact !== null) return { event, encoding: "whole", payload: Buffer.from(exact) };
  const isStandard = type === "broadcast" && event !== "" && payload !== undefined && Object.keys(rest).length === 0;
  return isStandard
    ? { event, encoding: "json", payload: Buffer.from(JSON.stringify(payload)) }
    : { event, encoding: "whole", payload: Buffer.from(JSON.stringify(value)) };
}
