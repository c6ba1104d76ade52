import type { Authenticator, Caller } from "#accounts/identity";
import type { SocketMemory } from "#http/sockets";
import { type ByteQuota, Reservation, type SharedBytes } from "#runtime";
import { isJsonObject } from "#runtime/json";
import type { Logger } from "#runtime/log";
import type { ChannelExtension, TopicAuthorization, TopicReadAccess } from "./authorization.ts";
import type { Broadcaster, ChannelTopic, TopicMember, TopicMembers } from "./broadcast.ts";
import { assignBindingIds } from "./changes/binding.ts";
import type { Presence } from "./presence.ts";
import {
  type ClientLimits,
  estimateJoinBytes,
  estimatePresenceBytes,
  reserveMemory,
} from "./protocol/client-limits.ts";
import type { RealtimeCounters } from "./protocol/counters.ts";
import {
  type BroadcastMessage,
  ChannelError,
  encodeMessage,
  errorReason,
  type JoinRequest,
  type ProtocolVersion,
  parseToken,
  type ReplayRequest,
  stringifyValue,
} from "./protocol/messages.ts";
import { encodeSocketFrame, type Outbox, Pacer } from "./protocol/outbox.ts";
import { encodeReplayed, type ReadKeptMessages } from "./replay.ts";
import { Subscription, type SubscriptionDependencies } from "./subscription.ts";

export type ChannelDependencies = SubscriptionDependencies & {
  /** Returns the current authenticator: the settings that it is made from may change. */
  readonly authenticator: () => Authenticator;
  readonly authorization: TopicAuthorization;
  readonly members: TopicMembers;
  readonly broadcaster: Broadcaster;
  readonly presence: Presence;
  readonly readKeptMessages: ReadKeptMessages;
  readonly limits: ClientLimits;
  readonly memory: SocketMemory;
  /** Frames that clients have not read yet. */
  readonly unsentFrames: SharedBytes<Buffer>;
  readonly counters: RealtimeCounters;
  readonly log: Pick<Logger, "debug" | "warn" | "error">;
};

export type ChannelSocket = {
  readonly version: ProtocolVersion;
  readonly outbox: Outbox;
  /** The memory that its channels may use for joins and for presences. */
  readonly memoryQuota: ByteQuota;
  readonly presenceQuota: ByteQuota;
  /** Authenticates a token; null stands for the API key that the socket was opened with. */
  identify(token: string | null): Promise<Caller>;
};

type ChannelJoin = {
  readonly socket: ChannelSocket;
  readonly topic: string;
  readonly joinRef: string | null;
  readonly request: JoinRequest;
  /** Called once when the channel is closed, for any reason. */
  readonly onEnd: () => void;
};

/** A permitted join. */
type AdmittedJoin = {
  readonly channelTopic: ChannelTopic;
  readonly caller: Caller;
  readonly access: TopicReadAccess;
  readonly reservedMemory: Reservation;
};

const TOPIC_PREFIX = "realtime:";
const MAX_TOPIC_LENGTH = 1_000;
/** The limit of keys, because all members of a topic are sent the keys of all. */
const MAX_PRESENCE_KEY_LENGTH = 1_000;
/** The time limit for a client to read replayed messages before it is sent the rest, which disconnects it if that is too much. */
const MAX_REPLAY_PACING_MS = 5_000;
const PUBLIC_ACCESS: TopicReadAccess = { broadcast: true, presence: true };

/** One join of one topic. */
export class Channel implements TopicMember {
  readonly topic: string;
  readonly channelTopic: ChannelTopic;
  readonly #dependencies: ChannelDependencies;
  readonly #join: ChannelJoin;
  readonly #presenceKey: string;
  /** The memory that the channel uses of its socket's quotas. */
  readonly #reservedMemory: Reservation;
  readonly #reservedPresence: Reservation;
  #caller: Caller;
  #token: string | null;
  #access: TopicReadAccess;
  #hasPresenceState = false;
  /** The permissions that were checked with the current token. */
  #writePermissions = new Map<ChannelExtension, Promise<boolean>>();
  readonly #subscription: Subscription;
  #releaseFeeds: () => void;
  #isClosed = false;

  /** Opens a channel. Throws if the join is rejected. */
  static async open(dependencies: ChannelDependencies, join: ChannelJoin): Promise<Channel> {
    const { socket, topic, request } = join;
    const name = topic.slice(TOPIC_PREFIX.length);
    if (!topic.startsWith(TOPIC_PREFIX) || name === "")
      throw new ChannelError("TopicNameRequired", "You must provide a topic name");
    if (name.length > MAX_TOPIC_LENGTH)
      throw new ChannelError("InvalidTopicName", `A topic has at most ${MAX_TOPIC_LENGTH} characters`);
    if ((request.presence.key?.length ?? 0) > MAX_PRESENCE_KEY_LENGTH)
      throw new ChannelError("InvalidPresenceKey", `A presence key has at most ${MAX_PRESENCE_KEY_LENGTH} characters`);
    const channelTopic = { name, isPrivate: request.isPrivate };
    const reservedMemory = new Reservation(socket.memoryQuota);
    reserveMemory(reservedMemory, estimateJoinBytes(join, request.token), socket.memoryQuota);
    try {
      const caller = await socket.identify(request.token);
      const access = await readAccess(dependencies, caller, channelTopic);
      const channel = new Channel(dependencies, join, { channelTopic, caller, access, reservedMemory });
      await channel.#subscribe();
      return channel;
    } catch (error) {
      reservedMemory.release();
      throw error;
    }
  }

  private constructor(
    dependencies: ChannelDependencies,
    join: ChannelJoin,
    { channelTopic, caller, access, reservedMemory }: AdmittedJoin,
  ) {
    this.topic = join.topic;
    this.channelTopic = channelTopic;
    this.#dependencies = dependencies;
    this.#join = join;
    this.#caller = caller;
    this.#token = join.request.token;
    this.#access = access;
    this.#presenceKey = join.request.presence.key ?? crypto.randomUUID();
    this.#reservedMemory = reservedMemory;
    this.#reservedPresence = new Reservation(join.socket.presenceQuota);
    this.#releaseFeeds = dependencies.feeds.addListener();
    const { topic, request, socket } = join;
    this.#subscription = new Subscription(dependencies, {
      ...socket,
      topic,
      request,
      reportGap: (reason) => this.reportGap(reason),
    });
  }

  get version(): ProtocolVersion {
    return this.#join.socket.version;
  }

  get outbox(): Outbox {
    return this.#join.socket.outbox;
  }

  get joinRef(): string | null {
    return this.#join.joinRef;
  }

  get caller(): Caller {
    return this.#caller;
  }

  /** The current token; null if only the socket's API key is used. */
  get token(): string | null {
    return this.#token;
  }

  get receivesBroadcasts(): boolean {
    return this.#access.broadcast;
  }

  get receivesPresence(): boolean {
    return this.#access.presence;
  }

  get receivesChanges(): boolean {
    return this.#join.request.bindings.length > 0;
  }

  get receivesOwnBroadcasts(): boolean {
    return this.#join.request.broadcast.self;
  }

  /** The position of the last change that was sent; null without bindings. */
  get resumeToken(): string | null {
    return this.#subscription.resumeToken;
  }

  /** Replies to the join, and starts to receive messages. */
  start(reply: (response: object) => void): void {
    const { request } = this.#join;
    const { members } = this.#dependencies;
    const ids = assignBindingIds(request.bindings);
    const { resumeToken } = this;
    reply({
      postgres_changes: request.bindings.map((binding, at) => ({ ...binding, id: ids[at] })),
      ...(resumeToken && { position: resumeToken }),
    });
    this.#sendSubscriptionState();
    if (request.broadcast.replicationReady) {
      this.#sendSystemMessage({ extension: "system", status: "ok", message: "Replication connection established" });
    }
    members.add(this);
    if (request.broadcast.replay && this.receivesBroadcasts) void this.#replay(request.broadcast.replay);
    if (request.presence.enabled) this.#sendPresenceState();
    this.#subscription.resume();
  }

  get acknowledgesBroadcasts(): boolean {
    return this.#join.request.broadcast.ack;
  }

  /** Sends a broadcast. Throws if it is rejected. */
  async broadcast(broadcast: BroadcastMessage): Promise<void> {
    const { broadcaster } = this.#dependencies;
    if (!(await this.#mayWrite("broadcast"))) throw topicUnauthorized("write to", this.channelTopic);
    const waitUntilSent = broadcaster.send(this.channelTopic, broadcast, this);
    if (this.acknowledgesBroadcasts || broadcaster.isCongested) await waitUntilSent();
  }

  /** Handles `{"type":"presence","event":"track","payload":{"name":"Alice"}}`; throws if it is rejected. */
  async handlePresence(message: unknown): Promise<void> {
    const { event, payload = {} } = isJsonObject(message) ? message : {};
    switch (stringifyValue(event ?? null).toLowerCase()) {
      case "track":
        if (!isJsonObject(payload)) throw new ChannelError(null, "Presence track payload must be a map");
        if (!(await this.#mayWrite("presence"))) throw topicUnauthorized("write to", this.channelTopic);
        if (this.#isClosed) break;
        // From now on it receives differences, which require the state before them.
        this.#sendPresenceState();
        await this.#track(payload);
        break;
      case "untrack":
        this.#untrack();
        break;
      default:
        throw new ChannelError("UnknownPresenceEvent", "Presence events are track and untrack");
    }
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#subscription.start(this.#caller);
    } catch (error) {
      this.#dispose();
      throw error;
    }
    if (this.#isClosed) throw new ChannelError("ChannelError", "Changes may have been missed: join again");
  }

  /** Replaces the token: from now on all checks use its claims. */
  async updateToken(message: unknown): Promise<void> {
    const token = parseToken(isJsonObject(message) ? message.access_token : null);
    if (token === null || token === this.#token) return;
    try {
      const caller = await this.#join.socket.identify(token);
      const access = await readAccess(this.#dependencies, caller, this.channelTopic);
      if (isReduced(access, this.#access)) throw accessRevoked(this.channelTopic);
      if (this.#isClosed) return;
      reserveMemory(this.#reservedMemory, estimateJoinBytes(this.#join, token), this.#join.socket.memoryQuota);
      this.#access = access;
      this.#token = token;
      this.#caller = caller;
      this.#writePermissions = new Map();
      await this.#subscription.updateCaller(caller);
      if (this.#isClosed) return;
      this.#sendSubscriptionState();
      if (this.#join.request.presence.enabled) this.#sendPresenceState();
    } catch (error) {
      if (error instanceof ChannelError) this.endWithError(error);
      else this.reportGap(`the new token could not be checked (${errorReason(error)})`);
    }
  }

  /** Closes the channel with the reason. The client does not join again by itself. */
  endWithError({ text }: ChannelError): void {
    if (this.#isClosed) return;
    this.#sendSystemMessage({ extension: "system", status: "error", message: text });
    this.close();
  }

  /** Closes the channel, because another join of the topic replaces it, or the client has left. */
  close(): void {
    if (this.#isClosed) return;
    this.#pushForJoin("phx_close");
    this.#dispose();
  }

  /** Closes the channel so that the client joins again, and refetches the missed changes. */
  reportGap(reason: string): void {
    if (this.#isClosed) return;
    this.#dependencies.counters.gaps++;
    const message = `Changes may have been missed: ${reason}. Refetch your data.`;
    this.#sendSystemMessage({ extension: "postgres_changes", status: "error", message });
    this.#pushForJoin("phx_error");
    this.#dispose();
  }

  /** Ends the channel after its socket was closed: nothing is sent. */
  handleSocketClosed(): void {
    this.#dispose();
  }

  #dispose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#dependencies.members.remove(this);
    this.#untrack();
    this.#reservedMemory.release();
    this.#subscription.end();
    this.#releaseFeeds();
    this.#join.onEnd();
  }

  async #track(payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { presence, broadcaster } = this.#dependencies;
    presence.assertFits(this, this.#presenceKey, payload);
    reserveMemory(
      this.#reservedPresence,
      estimatePresenceBytes(this.#presenceKey, payload),
      this.#join.socket.presenceQuota,
    );
    const relayed = presence.track(this, this.#presenceKey, payload);
    if (broadcaster.isCongested) await relayed;
  }

  #untrack(): void {
    this.#dependencies.presence.untrack(this);
    this.#reservedPresence.release();
  }

  #sendPresenceState(): void {
    if (this.#hasPresenceState || !this.receivesPresence) return;
    this.#hasPresenceState = true;
    this.outbox.send(this.#dependencies.presence.stateFrame(this));
  }

  #sendSubscriptionState(): void {
    const { state } = this.#subscription;
    if (state) this.#sendSystemMessage({ extension: "postgres_changes", ...state });
  }

  /** Replays messages. New messages are received already, so that none is missed: one of them may arrive twice, with the same id. */
  async #replay(request: ReplayRequest): Promise<void> {
    const { readKeptMessages, log } = this.#dependencies;
    try {
      const messages = await readKeptMessages(this.channelTopic.name, request);
      const pacer = new Pacer(MAX_REPLAY_PACING_MS);
      for (const message of messages) {
        if (this.outbox.isFull) await pacer.wait([this.outbox]);
        if (this.#isClosed || !this.receivesBroadcasts) return;
        this.#push("broadcast", encodeReplayed(message));
      }
    } catch (error) {
      log.warn({ err: error }, "messages of a channel could not be replayed");
      if (this.#isClosed) return;
      const message = "UnableToReplayMessages: Realtime was unable to replay messages";
      this.#sendSystemMessage({ extension: "broadcast", status: "error", message });
    }
  }

  #mayWrite(extension: ChannelExtension): Promise<boolean> {
    const { authorization } = this.#dependencies;
    const permission =
      this.#writePermissions.get(extension) ?? authorization.mayWrite(this.#caller, this.channelTopic, extension);
    this.#writePermissions.set(extension, permission);
    permission.catch(() => this.#writePermissions.delete(extension));
    return permission;
  }

  #sendSystemMessage(payload: { extension: string; status: "ok" | "error"; message: string }): void {
    this.#push("system", JSON.stringify({ ...payload, channel: this.channelTopic.name }));
  }

  #push(event: string, payload: string): void {
    this.#send({ joinRef: null, ref: null, topic: this.topic, event }, payload);
  }

  /** Sends an event with the join's ref, by which the client recognizes messages of its current join. */
  #pushForJoin(event: "phx_close" | "phx_error"): void {
    const { joinRef } = this;
    this.#send({ joinRef, ref: joinRef, topic: this.topic, event }, "{}");
  }

  #send(envelope: Parameters<typeof encodeMessage>[1], payload: string): void {
    this.outbox.send(encodeSocketFrame("text", encodeMessage(this.version, envelope, payload)));
  }
}

async function readAccess(
  { authorization }: ChannelDependencies,
  caller: Caller,
  channelTopic: ChannelTopic,
): Promise<TopicReadAccess> {
  if (!channelTopic.isPrivate) return PUBLIC_ACCESS;
  const access = await authorization.readAccess(caller, channelTopic.name);
  if (!access.broadcast && !access.presence) throw topicUnauthorized("read from", channelTopic);
  return access;
}

/** True if a permission was lost. A client that stayed joined without it would assume that nothing happens. */
function isReduced(now: TopicReadAccess, before: TopicReadAccess): boolean {
  return (before.broadcast && !now.broadcast) || (before.presence && !now.presence);
}

function accessRevoked({ name }: ChannelTopic): ChannelError {
  return new ChannelError("Unauthorized", `You no longer have permission to read from this Channel topic: ${name}`);
}

function topicUnauthorized(action: string, { name }: ChannelTopic): ChannelError {
  return new ChannelError("Unauthorized", `You do not have permissions to ${action} this Channel topic: ${name}`);
}
