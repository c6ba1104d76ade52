import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { Relay } from "../../realtime/relay.ts";
import { type Occupant, type Room, Rooms } from "../../realtime/rooms.ts";
import { Speech } from "../../realtime/speech.ts";
import { outboxTo } from "./outbox-to.ts";

const PATIENCE_MS = 50;
const LARGE = { event: "e", encoding: "json", payload: Buffer.from(JSON.stringify("x".repeat(600_000))) } as const;

const state = () => ({ status: "streaming", reason: null, position: null, history: null }) as const;

/** Speech in rooms of one, who reads nothing. */
function speechTo(...names: readonly string[]) {
  const rooms = new Rooms();
  const [first, ...others] = names.map((name): Room => {
    const room = { name, isPrivate: false };
    const { outbox } = outboxTo(new Duplex({ read() {}, write() {} }));
    const told = { hearsBroadcast: true, hearsPresence: false, hearsItself: false } as const;
    rooms.enter({ version: "2.0.0", topic: `realtime:${name}`, room, outbox, ...told } satisfies Occupant);
    return room;
  });
  const log = { warn: () => {}, error: () => {} };
  const relay = new Relay({ changes: { emit: async () => {}, state }, hear: () => {}, log });
  return { speech: new Speech(rooms, relay), room: first!, other: others[0]! };
}

test("who says something and waits until it has been passed on waits for whoever has not read yet, for a while", async () => {
  const { speech, room } = speechTo("room");
  const startedAt = performance.now();
  await speech.say(room, LARGE, null)();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(PATIENCE_MS);
});

test("what is said by somebody who does not wait takes nobody's patience away", async () => {
  const { speech, room, other } = speechTo("room", "other");
  speech.say(room, LARGE, null);
  // For as long as it would have been waited for.
  await speech.say(other, LARGE, null)();
  const startedAt = performance.now();
  await speech.say(room, LARGE, null)();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(PATIENCE_MS);
});
