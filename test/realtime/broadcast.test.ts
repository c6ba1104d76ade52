import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { Broadcaster, type ChannelTopic, type TopicMember, TopicMembers } from "../../realtime/broadcast.ts";
import { GatewayRelay } from "../../realtime/relay.ts";
import { outboxTo } from "./outbox-to.ts";

const PATIENCE_MS = 50;
const LARGE = { event: "e", encoding: "json", payload: Buffer.from(JSON.stringify("x".repeat(600_000))) } as const;

const state = () => ({ status: "streaming", reason: null, position: null, history: null }) as const;

/** A broadcaster for topics with one member that reads nothing. */
function speechTo(...names: readonly string[]) {
  const rooms = new TopicMembers();
  const [first, ...others] = names.map((name): ChannelTopic => {
    const room = { name, isPrivate: false };
    const { outbox } = outboxTo(new Duplex({ read() {}, write() {} }));
    const result = { receivesBroadcasts: true, receivesPresence: false, receivesOwnBroadcasts: false } as const;
    rooms.add({
      version: "2.0.0",
      topic: `realtime:${name}`,
      channelTopic: room,
      outbox,
      ...result,
    } satisfies TopicMember);
    return room;
  });
  const log = { warn: () => {}, error: () => {} };
  const relay = new GatewayRelay({ changes: { emit: async () => {}, state }, receive: () => {}, log });
  return { speech: new Broadcaster(rooms, relay), room: first!, other: others[0]! };
}

test("a sender that waits for delivery waits for slow readers, for a limited time", async () => {
  const { speech, room } = speechTo("room");
  const startedAt = performance.now();
  await speech.send(room, LARGE, null)();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(PATIENCE_MS);
});

test("broadcasts of a sender that does not wait do not use up the time of slow readers", async () => {
  const { speech, room, other } = speechTo("room", "other");
  speech.send(room, LARGE, null);
  // This waits as long as the sender would have waited.
  await speech.send(other, LARGE, null)();
  const startedAt = performance.now();
  await speech.send(room, LARGE, null)();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(PATIENCE_MS);
});
