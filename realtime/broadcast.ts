import {
  type BroadcastMessage,
  encodeBroadcastFrame,
  encodeBroadcastPayload,
  encodeMessage,
  type ProtocolVersion,
} from "./protocol/messages.ts";
import { encodeSocketFrame, type Outbox, Pacer } from "./protocol/outbox.ts";
import type { GatewayMessage, GatewayRelay } from "./relay.ts";

/** The time limit for slow readers. It is shorter than for changes, because the stream and all its followers wait. */
const MAX_READER_WAIT_MS = 50;

type BroadcastRelay = Pick<GatewayRelay, "send" | "isCongested">;

/** Sends broadcasts to the members of a topic in this process, and to the other gateways. */
export class Broadcaster {
  readonly #members: TopicMembers;
  readonly #relay: BroadcastRelay;
  readonly #pacer = new Pacer(MAX_READER_WAIT_MS);

  constructor(members: TopicMembers, relay: BroadcastRelay) {
    this.#members = members;
    this.#relay = relay;
  }

  get isCongested(): boolean {
    return this.#relay.isCongested;
  }

  /** Sends the broadcast. The returned function resolves when the message has been delivered; slow readers may delay that. */
  send(channelTopic: ChannelTopic, broadcast: BroadcastMessage, sender: TopicMember | null): () => Promise<void> {
    const slowOutboxes = this.#members.broadcast(channelTopic, broadcast, sender);
    const { event, encoding, payload } = broadcast;
    const text = payload.toString(encoding === "raw" ? "base64" : "utf8");
    const relayed = this.#relay.send({
      kind: "broadcast",
      topic: channelTopic.name,
      private: channelTopic.isPrivate,
      event,
      encoding,
      payload: text,
    });
    return async () => {
      if (slowOutboxes.length > 0) await this.#pacer.wait(slowOutboxes);
      await relayed;
    };
  }

  /** Delivers a message from another gateway, or from SQL: one transaction may send more than clients read at once. */
  receive({ topic, private: isPrivate, event, encoding, payload }: GatewayMessage): void | Promise<void> {
    if (typeof topic !== "string" || typeof event !== "string" || typeof payload !== "string") return;
    const broadcast: BroadcastMessage = {
      event,
      encoding: encoding === "raw" || encoding === "whole" ? encoding : "json",
      payload: Buffer.from(payload, encoding === "raw" ? "base64" : "utf8"),
    };
    const slowOutboxes = this.#members.broadcast({ name: topic, isPrivate: isPrivate === true }, broadcast, null);
    if (slowOutboxes.length > 0) return this.#pacer.wait(slowOutboxes);
  }
}

/** The topic of a channel. A private and a public channel of one name are two topics. */
export type ChannelTopic = { readonly name: string; readonly isPrivate: boolean };

/** A channel that has joined a topic. */
export type TopicMember = {
  readonly version: ProtocolVersion;
  readonly topic: string;
  readonly channelTopic: ChannelTopic;
  readonly outbox: Outbox;
  readonly receivesBroadcasts: boolean;
  readonly receivesPresence: boolean;
  /** True if the member receives its own broadcasts. */
  readonly receivesOwnBroadcasts: boolean;
};

/** The members of each topic in this process. */
export class TopicMembers {
  readonly #membersByTopic = new Map<string, Set<TopicMember>>();

  add(member: TopicMember): void {
    const key = topicKey(member.channelTopic);
    const members = this.#membersByTopic.get(key) ?? new Set();
    this.#membersByTopic.set(key, members.add(member));
  }

  remove(member: TopicMember): void {
    const key = topicKey(member.channelTopic);
    const members = this.#membersByTopic.get(key);
    if (members?.delete(member) && members.size === 0) this.#membersByTopic.delete(key);
  }

  of(topic: ChannelTopic): Iterable<TopicMember> {
    return this.#membersByTopic.get(topicKey(topic)) ?? [];
  }

  /** Sends to all members but the sender. Returns the outboxes that should be waited for before more is sent. */
  broadcast(topic: ChannelTopic, broadcast: BroadcastMessage, sender: TopicMember | null): readonly Outbox[] {
    const frames = new Map<ProtocolVersion, Buffer | null>();
    const slowOutboxes: Outbox[] = [];
    for (const member of this.of(topic)) {
      if (!member.receivesBroadcasts || (member === sender && !member.receivesOwnBroadcasts)) continue;
      const { version, topic, outbox } = member;
      if (!frames.has(version)) frames.set(version, encodeBroadcast(version, topic, broadcast));
      const frame = frames.get(version);
      if (frame) outbox.send(frame);
      if (outbox.needsPacing) slowOutboxes.push(outbox);
    }
    return slowOutboxes;
  }
}

export function topicKey({ name, isPrivate }: ChannelTopic): string {
  return `${isPrivate ? "private" : "public"}:${name}`;
}

/** Encodes the broadcast. Returns null for raw bytes to a client that supports only text. */
function encodeBroadcast(version: ProtocolVersion, topic: string, broadcast: BroadcastMessage): Buffer | null {
  const binary = version === "2.0.0" ? encodeBroadcastFrame(topic, broadcast) : null;
  if (binary) return encodeSocketFrame("binary", binary);
  if (broadcast.encoding === "raw") return null;
  const envelope = { joinRef: null, ref: null, topic, event: "broadcast" };
  return encodeSocketFrame("text", encodeMessage(version, envelope, encodeBroadcastPayload(broadcast)));
}
