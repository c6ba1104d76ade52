import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { isJsonObject } from "../engine/json-object.ts";
import { spellMessage, type Version } from "./protocol.ts";
import { Refusal } from "./refusal.ts";
import type { Relay, Said } from "./relay.ts";
import { sizeOfPresence } from "./retained.ts";
import { keyOf, type Occupant, type Room, type Rooms } from "./rooms.ts";
import { socketFrame } from "./socket-frame.ts";

type Payload = Readonly<Record<string, unknown>>;
/** What one channel tells of itself under a key; `ref` tells it from others and from what it told before. */
type Meta = { readonly room: Room; readonly key: string; readonly ref: string; readonly payload: Payload };
/** What is known of another gateway, and when it was last heard. `version`: its count of changes; null before it has told all. */
type Other = { readonly metas: Map<string, Meta>; version: number | null; heardAt: number; isAsked: boolean };
type Change = { readonly joins?: Meta; readonly leaves?: Meta };
/** Who is present in one room, what that takes in memory, and how it was spelled for whoever came since it last changed. */
type Present = { readonly metas: Map<string, Meta>; bytes: number; readonly frames: Map<Version, Buffer> };

/** Whoever joins a room is sent all of its presences at once. */
const MOST_BYTES_OF_ROOM = 4 * 2 ** 20;
/** A gateway says that it is still there when others may show those who are present here. */
const ALIVE_MS = 10_000;
const SILENT_MS = 35_000;

/** Who is present where, here and at the other gateways. Each gateway answers for those who are connected to it. */
export class Presence {
  readonly #rooms: Rooms;
  readonly #relay: Relay;
  /** Of those who are here. */
  readonly #own = new Map<Occupant, Meta>();
  readonly #present = new Map<string, Present>();
  readonly #others = new Map<string, Other>();
  /** How often something has changed here: who has missed a change sees it by that. */
  #version = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(rooms: Rooms, relay: Relay) {
    this.#rooms = rooms;
    this.#relay = relay;
  }

  /** Refuses by throwing where the room's presences would take too much. */
  assertRoomFor(occupant: Occupant, key: string, payload: Payload): void {
    const others = (this.#present.get(keyOf(occupant.room))?.bytes ?? 0) - sizeOf(this.#own.get(occupant));
    if (others + sizeOfPresence(key, payload) <= MOST_BYTES_OF_ROOM) return;
    throw new Refusal("PresenceLimitReached", "The presences of this channel take too much together: track less");
  }

  /** Another track replaces the one before, unless it says the same. Resolves when the other gateways are being told. */
  async track(occupant: Occupant, key: string, payload: Payload): Promise<void> {
    const leaves = this.#own.get(occupant);
    if (leaves && isDeepStrictEqual(leaves.payload, payload)) return;
    const joins: Meta = { room: occupant.room, key, ref: randomUUID(), payload };
    this.#own.set(occupant, joins);
    await this.#tell(leaves ? { joins, leaves } : { joins });
  }

  untrack(occupant: Occupant): void {
    const leaves = this.#own.get(occupant);
    if (!leaves) return;
    this.#own.delete(occupant);
    void this.#tell({ leaves });
  }

  /** Who is in the room now: `{"alice":{"metas":[{"name":"Alice","phx_ref":"F1"}]}}` */
  state(room: Room): string {
    return spellMetas([...(this.#present.get(keyOf(room))?.metas.values() ?? [])]);
  }

  /** The same, as it is sent to an occupant: all who come before it changes share one frame. */
  stateFrame({ room, version, topic }: Pick<Occupant, "room" | "version" | "topic">): Buffer {
    const present = this.#present.get(keyOf(room));
    const known = present?.frames.get(version);
    if (known) return known;
    const envelope = { joinRef: null, ref: null, topic, event: "presence_state" };
    const frame = socketFrame("text", spellMessage(version, envelope, this.state(room)));
    present?.frames.set(version, frame);
    return frame;
  }

  /** Asks the others who is present there, and tells them who is here: at the beginning, and when something may have been missed. */
  introduce(): void {
    this.#tellAll("presence-hello");
  }

  hear(said: Said, gateway: string): void {
    const other = this.#others.get(gateway) ?? { metas: new Map(), version: null, heardAt: 0, isAsked: false };
    other.heardAt = performance.now();
    this.#others.set(gateway, other);
    const { version } = said;
    switch (said.kind) {
      case "presence-hello":
      case "presence-here":
        this.#replaceAll(other.metas, readMetas(said.metas));
        other.version = typeof version === "number" ? version : null;
        other.isAsked = false;
        if (said.kind === "presence-hello") this.#tellAll("presence-here");
        break;
      case "presence": {
        const [joins] = readMetas([said.joins]);
        const [leaves] = readMetas([said.leaves]);
        if (leaves) other.metas.delete(leaves.ref);
        if (joins) other.metas.set(joins.ref, joins);
        this.#apply(joins ? [joins] : [], leaves ? [leaves] : []);
        other.version = other.version === null ? null : other.version + 1;
        this.#compare(other, version);
        break;
      }
      case "presence-alive":
        this.#compare(other, version);
        break;
      case "presence-bye":
        this.#forget(gateway);
        break;
    }
    this.#watch();
  }

  /** Resolves when the others have been told. */
  close(): Promise<void> {
    clearInterval(this.#timer);
    return this.#others.size > 0 ? this.#relay.say({ kind: "presence-bye" }) : this.#relay.settled();
  }

  #tell(change: Change): Promise<void> {
    this.#version++;
    this.#apply(change.joins ? [change.joins] : [], change.leaves ? [change.leaves] : []);
    const relayed = this.#relay.say({ kind: "presence", version: this.#version, ...change });
    this.#watch();
    return relayed;
  }

  #tellAll(kind: "presence-hello" | "presence-here"): void {
    void this.#relay.say({ kind, version: this.#version, metas: [...this.#own.values()] });
  }

  /** What it has said may not have come through, or it was taken for dead: then it is asked who is there. */
  #compare(other: Other, version: unknown): void {
    if (other.version === version || other.isAsked) return;
    other.isAsked = true;
    this.introduce();
  }

  /** Thousands may come or go with a gateway: each room is told of all of its own at once. */
  #replaceAll(known: Map<string, Meta>, metas: readonly Meta[]): void {
    const current = new Map(metas.map((meta) => [meta.ref, meta]));
    const leaves = [...known.values()].filter(({ ref }) => !current.has(ref));
    const joins = [...current.values()].filter(({ ref }) => !known.has(ref));
    for (const { ref } of leaves) known.delete(ref);
    for (const meta of joins) known.set(meta.ref, meta);
    const [leavesByRoom, joinsByRoom] = [leaves, joins].map((each) => Map.groupBy(each, ({ room }) => keyOf(room)));
    for (const key of new Set([...leavesByRoom!.keys(), ...joinsByRoom!.keys()])) {
      this.#apply(joinsByRoom!.get(key) ?? [], leavesByRoom!.get(key) ?? []);
    }
  }

  /** All of one room. */
  #apply(joins: readonly Meta[], leaves: readonly Meta[]): void {
    const first = joins[0] ?? leaves[0];
    if (!first) return;
    const key = keyOf(first.room);
    const present = this.#present.get(key) ?? { metas: new Map<string, Meta>(), bytes: 0, frames: new Map() };
    this.#present.set(key, present);
    for (const { ref } of leaves) present.bytes -= sizeOf(present.metas.get(ref));
    for (const { ref } of leaves) present.metas.delete(ref);
    for (const meta of joins) present.bytes += sizeOf(meta) - sizeOf(present.metas.get(meta.ref));
    for (const meta of joins) present.metas.set(meta.ref, meta);
    present.frames.clear();
    if (present.metas.size === 0) this.#present.delete(key);
    const isReplaced = joins.length === 1 && leaves.length === 1 && joins[0]!.key === leaves[0]!.key;
    const diff = `{"joins":${spellMetas(joins, isReplaced ? leaves[0]!.ref : null)},"leaves":${spellMetas(leaves)}}`;
    const frames = new Map<Version, Buffer>();
    for (const { version, topic, hearsPresence, outbox } of this.#rooms.in(first.room)) {
      if (!hearsPresence) continue;
      const envelope = { joinRef: null, ref: null, topic, event: "presence_diff" };
      const frame = frames.get(version) ?? socketFrame("text", spellMessage(version, envelope, diff));
      frames.set(version, frame);
      outbox.send(frame);
    }
  }

  /** Only while there is somebody of whom, or to whom, something is to be known. */
  #watch(): void {
    const isNeeded = this.#others.size > 0;
    if (isNeeded) this.#timer ??= setInterval(() => this.#look(), ALIVE_MS).unref();
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #look(): void {
    if (this.#own.size > 0) void this.#relay.say({ kind: "presence-alive", version: this.#version });
    for (const [gateway, { metas, heardAt }] of this.#others) {
      if (metas.size > 0 && performance.now() - heardAt > SILENT_MS) this.#forget(gateway);
    }
    this.#watch();
  }

  #forget(gateway: string): void {
    this.#replaceAll(this.#others.get(gateway)!.metas, []);
    this.#others.delete(gateway);
  }
}

function sizeOf(meta: Meta | undefined): number {
  return meta ? sizeOfPresence(meta.key, meta.payload) : 0;
}

function spellMetas(metas: readonly Meta[], replaced: string | null = null): string {
  const byKey = Map.groupBy(metas, ({ key }) => key);
  const state = [...byKey].map(([key, own]) => {
    const told = own.map(({ payload, ref }) => ({
      ...payload,
      phx_ref: ref,
      ...(replaced && { phx_ref_prev: replaced }),
    }));
    return [key, { metas: told }] as const;
  });
  return JSON.stringify(Object.fromEntries(state));
}

function readMetas(written: unknown): Meta[] {
  return (Array.isArray(written) ? written : []).filter(isMeta);
}

function isMeta(value: unknown): value is Meta {
  return (
    isJsonObject(value) && typeof value.key === "string" && typeof value.ref === "string" && isJsonObject(value.room)
  );
}
