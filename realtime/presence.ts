import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { isJsonObject } from "#runtime/json";
import { type ChannelTopic, type TopicMember, type TopicMembers, topicKey } from "./broadcast.ts";
import { estimatePresenceBytes } from "./protocol/client-limits.ts";
import { ChannelError, encodeMessage, type ProtocolVersion } from "./protocol/messages.ts";
import { encodeSocketFrame } from "./protocol/outbox.ts";
import type { GatewayMessage, GatewayRelay } from "./relay.ts";

type PresencePayload = Readonly<Record<string, unknown>>;
/** The presence that one channel tracks under a key; `ref` distinguishes it from others and from its earlier ones. */
type PresenceMeta = {
  readonly room: ChannelTopic;
  readonly key: string;
  readonly ref: string;
  readonly payload: PresencePayload;
};
/** Another gateway's presences. `version` is its count of changes; null until it has sent its whole state. */
type RemoteGateway = {
  readonly metas: Map<string, PresenceMeta>;
  version: number | null;
  lastSeenAt: number;
  isStateRequested: boolean;
};
type PresenceChange = { readonly joins?: PresenceMeta; readonly leaves?: PresenceMeta };
/** The presences of one topic, their size in memory, and the frames that were encoded since the last change. */
type TopicPresence = {
  readonly metas: Map<string, PresenceMeta>;
  bytes: number;
  readonly frames: Map<ProtocolVersion, Buffer>;
};

/** The limit of a topic's presences, since a client that joins is sent all of them at once. */
const MAX_TOPIC_BYTES = 4 * 2 ** 20;
/** The interval of the signs of life that a gateway with presences sends to the others. */
const ALIVE_INTERVAL_MS = 10_000;
const GATEWAY_TIMEOUT_MS = 35_000;

type PresenceRelay = Pick<GatewayRelay, "send" | "flushed">;

/** The presences of all topics, here and at other gateways. Each gateway publishes those of its own clients. */
export class Presence {
  readonly #members: TopicMembers;
  readonly #relay: PresenceRelay;
  /** The presences of this gateway. */
  readonly #own = new Map<TopicMember, PresenceMeta>();
  readonly #byTopic = new Map<string, TopicPresence>();
  readonly #gateways = new Map<string, RemoteGateway>();
  /** The number of published changes: a gateway that has missed one notices it by the number. */
  #version = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(members: TopicMembers, relay: PresenceRelay) {
    this.#members = members;
    this.#relay = relay;
  }

  /** Throws if the topic's presences would take too much memory. */
  assertFits(member: TopicMember, key: string, payload: PresencePayload): void {
    const otherBytes =
      (this.#byTopic.get(topicKey(member.channelTopic))?.bytes ?? 0) - metaBytes(this.#own.get(member));
    if (otherBytes + estimatePresenceBytes(key, payload) <= MAX_TOPIC_BYTES) return;
    throw new ChannelError("PresenceLimitReached", "The presences of this channel take too much memory: track less");
  }

  /** Replaces the channel's presence, unless it is equal. Resolves when the change is on its way to the other gateways. */
  async track(member: TopicMember, key: string, payload: PresencePayload): Promise<void> {
    const leaves = this.#own.get(member);
    if (leaves && isDeepStrictEqual(leaves.payload, payload)) return;
    const joins: PresenceMeta = { room: member.channelTopic, key, ref: randomUUID(), payload };
    this.#own.set(member, joins);
    await this.#publish(leaves ? { joins, leaves } : { joins });
  }

  untrack(member: TopicMember): void {
    const leaves = this.#own.get(member);
    if (!leaves) return;
    this.#own.delete(member);
    void this.#publish({ leaves });
  }

  /** Returns the state of a topic: `{"alice":{"metas":[{"name":"Alice","phx_ref":"F1"}]}}` */
  state(room: ChannelTopic): string {
    return encodeMetas([...(this.#byTopic.get(topicKey(room))?.metas.values() ?? [])]);
  }

  /** Returns the state as a frame, which is shared until the state changes. */
  stateFrame({ channelTopic: room, version, topic }: Pick<TopicMember, "channelTopic" | "version" | "topic">): Buffer {
    const topicPresence = this.#byTopic.get(topicKey(room));
    const previous = topicPresence?.frames.get(version);
    if (previous) return previous;
    const envelope = { joinRef: null, ref: null, topic, event: "presence_state" };
    const frame = encodeSocketFrame("text", encodeMessage(version, envelope, this.state(room)));
    topicPresence?.frames.set(version, frame);
    return frame;
  }

  /** Exchanges states with the other gateways: at the start, and when a message may have been missed. */
  exchangeState(): void {
    this.#sendState("presence-hello");
  }

  receive(message: GatewayMessage, gateway: string): void {
    const remote = this.#gateways.get(gateway) ?? {
      metas: new Map(),
      version: null,
      lastSeenAt: 0,
      isStateRequested: false,
    };
    remote.lastSeenAt = performance.now();
    this.#gateways.set(gateway, remote);
    const { version } = message;
    switch (message.kind) {
      case "presence-hello":
      case "presence-here":
        this.#replaceAll(remote.metas, parseMetas(message.metas));
        remote.version = typeof version === "number" ? version : null;
        remote.isStateRequested = false;
        if (message.kind === "presence-hello") this.#sendState("presence-here");
        break;
      case "presence": {
        const [joins] = parseMetas([message.joins]);
        const [leaves] = parseMetas([message.leaves]);
        if (leaves) remote.metas.delete(leaves.ref);
        if (joins) remote.metas.set(joins.ref, joins);
        this.#apply(joins ? [joins] : [], leaves ? [leaves] : []);
        remote.version = remote.version === null ? null : remote.version + 1;
        this.#requestStateIfBehind(remote, version);
        break;
      }
      case "presence-alive":
        this.#requestStateIfBehind(remote, version);
        break;
      case "presence-bye":
        this.#removeGateway(gateway);
        break;
    }
    this.#updateTimer();
  }

  /** Resolves when the other gateways have been notified. */
  close(): Promise<void> {
    clearInterval(this.#timer);
    return this.#gateways.size > 0 ? this.#relay.send({ kind: "presence-bye" }) : this.#relay.flushed();
  }

  #publish(change: PresenceChange): Promise<void> {
    this.#version++;
    this.#apply(change.joins ? [change.joins] : [], change.leaves ? [change.leaves] : []);
    const relayed = this.#relay.send({ kind: "presence", version: this.#version, ...change });
    this.#updateTimer();
    return relayed;
  }

  #sendState(kind: "presence-hello" | "presence-here"): void {
    void this.#relay.send({ kind, version: this.#version, metas: [...this.#own.values()] });
  }

  /** Requests the state of a gateway if a message may have been lost, or if the gateway was considered dead. */
  #requestStateIfBehind(remote: RemoteGateway, version: unknown): void {
    if (remote.version === version || remote.isStateRequested) return;
    remote.isStateRequested = true;
    this.exchangeState();
  }

  /** Replaces presences. Thousands may come or go with a gateway, so each topic is sent one difference. */
  #replaceAll(previous: Map<string, PresenceMeta>, metas: readonly PresenceMeta[]): void {
    const current = new Map(metas.map((meta) => [meta.ref, meta]));
    const leaves = [...previous.values()].filter(({ ref }) => !current.has(ref));
    const joins = [...current.values()].filter(({ ref }) => !previous.has(ref));
    for (const { ref } of leaves) previous.delete(ref);
    for (const meta of joins) previous.set(meta.ref, meta);
    const [leavesByRoom, joinsByRoom] = [leaves, joins].map((each) => Map.groupBy(each, ({ room }) => topicKey(room)));
    for (const key of new Set([...leavesByRoom!.keys(), ...joinsByRoom!.keys()])) {
      this.#apply(joinsByRoom!.get(key) ?? [], leavesByRoom!.get(key) ?? []);
    }
  }

  /** Applies changes, all of one topic. */
  #apply(joins: readonly PresenceMeta[], leaves: readonly PresenceMeta[]): void {
    const first = joins[0] ?? leaves[0];
    if (!first) return;
    const key = topicKey(first.room);
    const topicPresence = this.#byTopic.get(key) ?? {
      metas: new Map<string, PresenceMeta>(),
      bytes: 0,
      frames: new Map(),
    };
    this.#byTopic.set(key, topicPresence);
    for (const { ref } of leaves) topicPresence.bytes -= metaBytes(topicPresence.metas.get(ref));
    for (const { ref } of leaves) topicPresence.metas.delete(ref);
    for (const meta of joins) topicPresence.bytes += metaBytes(meta) - metaBytes(topicPresence.metas.get(meta.ref));
    for (const meta of joins) topicPresence.metas.set(meta.ref, meta);
    topicPresence.frames.clear();
    if (topicPresence.metas.size === 0) this.#byTopic.delete(key);
    const isReplaced = joins.length === 1 && leaves.length === 1 && joins[0]!.key === leaves[0]!.key;
    const diff = `{"joins":${encodeMetas(joins, isReplaced ? leaves[0]!.ref : null)},"leaves":${encodeMetas(leaves)}}`;
    const frames = new Map<ProtocolVersion, Buffer>();
    for (const { version, topic, receivesPresence, outbox } of this.#members.of(first.room)) {
      if (!receivesPresence) continue;
      const envelope = { joinRef: null, ref: null, topic, event: "presence_diff" };
      const frame = frames.get(version) ?? encodeSocketFrame("text", encodeMessage(version, envelope, diff));
      frames.set(version, frame);
      outbox.send(frame);
    }
  }

  /** Starts or stops the timer, which runs only while other gateways are known. */
  #updateTimer(): void {
    const isNeeded = this.#gateways.size > 0;
    if (isNeeded) this.#timer ??= setInterval(() => this.#checkGateways(), ALIVE_INTERVAL_MS).unref();
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #checkGateways(): void {
    if (this.#own.size > 0) void this.#relay.send({ kind: "presence-alive", version: this.#version });
    for (const [gateway, { metas, lastSeenAt }] of this.#gateways) {
      if (metas.size > 0 && performance.now() - lastSeenAt > GATEWAY_TIMEOUT_MS) this.#removeGateway(gateway);
    }
    this.#updateTimer();
  }

  #removeGateway(gateway: string): void {
    this.#replaceAll(this.#gateways.get(gateway)!.metas, []);
    this.#gateways.delete(gateway);
  }
}

function metaBytes(meta: PresenceMeta | undefined): number {
  return meta ? estimatePresenceBytes(meta.key, meta.payload) : 0;
}

function encodeMetas(metas: readonly PresenceMeta[], replaced: string | null = null): string {
  const byKey = Map.groupBy(metas, ({ key }) => key);
  const encode = ({ payload, ref }: PresenceMeta) => ({
    ...payload,
    phx_ref: ref,
    ...(replaced && { phx_ref_prev: replaced }),
  });
  const state = [...byKey].map(([key, own]) => [key, { metas: own.map(encode) }] as const);
  return JSON.stringify(Object.fromEntries(state));
}

function parseMetas(value: unknown): PresenceMeta[] {
  return (Array.isArray(value) ? value : []).filter(isMeta);
}

function isMeta(value: unknown): value is PresenceMeta {
  return (
    isJsonObject(value) && typeof value.key === "string" && typeof value.ref === "string" && isJsonObject(value.room)
  );
}
