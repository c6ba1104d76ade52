import { Duplex, PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type TopicMember, TopicMembers } from "../../realtime/broadcast.ts";
import { Presence } from "../../realtime/presence.ts";
import { makeRealtimeCounters } from "../../realtime/protocol/counters.ts";
import { type GatewayMessage, GatewayRelay } from "../../realtime/relay.ts";
import { outboxTo } from "./outbox-to.ts";

const ROOM = { name: "room1", isPrivate: false };
const log = { warn: () => {}, error: () => {} };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Opens gateways that receive each other's messages, until one is killed or muted. */
function network() {
  const alive: { readonly relay: GatewayRelay; isMute: boolean }[] = [];
  return () => {
    const emit = async (prefix: string, content: Uint8Array) => {
      if (!alive.includes(gateway)) return;
      if (gateway.isMute) throw new Error("The database is away");
      const message = { prefix, content: Buffer.from(content), transaction: null, lsn: 0n, index: 0 };
      for (const { relay } of alive) relay.receive(message);
    };
    const changes = {
      emit,
      state: () => ({ status: "streaming", reason: null, position: null, history: null }) as const,
    };
    const hear = (said: GatewayMessage, from: string | null) => presence.receive(said, from!);
    const relay: GatewayRelay = new GatewayRelay({ changes, receive: hear, log });
    const rooms = new TopicMembers();
    const presence = new Presence(rooms, relay);
    const gateway = {
      rooms,
      relay,
      presence,
      isMute: false,
      whoIsThere: () => Object.keys(JSON.parse(presence.state(ROOM))).sort(),
      kill: () => alive.splice(alive.indexOf(gateway), 1),
    };
    alive.push(gateway);
    presence.exchangeState();
    return gateway;
  };
}

const occupant = () => ({ channelTopic: ROOM }) as TopicMember;
const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000);

test("presences of a gateway that is killed leave after 35 seconds, and no others do", async () => {
  const open = network();
  const [one, other, killed] = [open(), open(), open()];
  one.presence.track(occupant(), "alice", {});
  other.presence.track(occupant(), "bob", {});
  killed.presence.track(occupant(), "carol", {});
  await pass(1);
  killed.kill();
  await pass(33);
  expect(one.whoIsThere()).toEqual(["alice", "bob", "carol"]);
  await pass(16);
  for (const gateway of [one, other]) expect(gateway.whoIsThere()).toEqual(["alice", "bob"]);
  await pass(600);
  for (const gateway of [one, other]) expect(gateway.whoIsThere()).toEqual(["alice", "bob"]);
});

test("a gateway that starts later receives the state", async () => {
  const open = network();
  const one = open();
  one.presence.track(occupant(), "alice", {});
  await pass(1);
  const later = open();
  await pass(1);
  expect(later.whoIsThere()).toEqual(["alice"]);
});

test("a gateway that was silent or considered dead is known again as soon as it sends a message", async () => {
  const open = network();
  const [one, other] = [open(), open()];
  const [alice, bob] = [occupant(), occupant()];
  one.presence.track(alice, "alice", {});
  one.presence.track(bob, "bob", {});
  await pass(1);
  one.isMute = true;
  one.presence.untrack(alice);
  one.presence.track(occupant(), "carol", {});
  await pass(1);
  expect(other.whoIsThere()).toEqual(["alice", "bob"]);
  one.isMute = false;
  await pass(11);
  expect(other.whoIsThere()).toEqual(["bob", "carol"]);

  one.isMute = true;
  await pass(60);
  expect(other.whoIsThere()).toEqual([]);
  one.isMute = false;
  await pass(11);
  expect(other.whoIsThere()).toEqual(["bob", "carol"]);
});

test("many presences that leave with their gateway are sent in one message, which disconnects no subscriber", async () => {
  const open = network();
  const [one, other] = [open(), open()];
  const tally = makeRealtimeCounters();
  const { outbox } = outboxTo(new PassThrough().resume(), { tally });
  const watcher = { channelTopic: ROOM, version: "2.0.0", topic: "realtime:room1", receivesPresence: true, outbox };
  one.rooms.add(watcher as unknown as TopicMember);
  for (let nth = 0; nth < 30; nth++) {
    other.presence.track(occupant(), `guest ${nth}`, { picture: "x".repeat(200_000) });
    await pass(1);
    outbox.flush();
  }
  expect(one.whoIsThere()).toHaveLength(30);
  const result = tally.messagesOut;
  await other.presence.close();
  await pass(1);
  expect(one.whoIsThere()).toEqual([]);
  expect(tally.messagesOut - result).toBe(1);
  expect(tally.overwhelmed).toBe(0);
});

test("the presence of a client that it disconnects leaves after it has joined", async () => {
  const open = network();
  const [one, other] = [open(), open()];
  const received: string[] = [];
  const collect = (chunk: Buffer, _encoding: string, done: () => void) => {
    received.push(chunk.toString());
    done();
  };
  const memberWith = (outbox: TopicMember["outbox"]) =>
    ({
      ...{ channelTopic: ROOM, version: "2.0.0", topic: "realtime:room1", receivesPresence: true, outbox },
    }) as unknown as TopicMember;
  const leave = () => one.presence.untrack(stalled);
  const { outbox: unread, ended } = outboxTo(new Duplex({ read() {}, write() {} }), { onOverflow: leave });
  const { outbox } = outboxTo(new Duplex({ read() {}, write: collect }));
  const stalled: TopicMember = memberWith(unread);
  for (const member of [stalled, memberWith(outbox)]) one.rooms.add(member);
  unread.send(Buffer.alloc(5 * 2 ** 20));
  one.presence.track(stalled, "alice", {});
  await pass(1);
  outbox.flush();
  expect(received.join().match(/"(joins|leaves)":\{"alice"/g)).toEqual(['"joins":{"alice"', '"leaves":{"alice"']);
  expect(ended.overflows).toBe(1);
  for (const gateway of [one, other]) expect(gateway.whoIsThere()).toEqual([]);
});
