import { type Broadcast, spellBroadcast, writeBroadcast } from "./broadcast-frame.ts";
import type { Outbox } from "./outbox.ts";
import { spellMessage, type Version } from "./protocol.ts";
import { socketFrame } from "./socket-frame.ts";

/** A private and a public channel of one name are two rooms. */
export type Room = { readonly name: string; readonly isPrivate: boolean };

/** A channel that is in a room. */
export type Occupant = {
  readonly version: Version;
  readonly topic: string;
  readonly room: Room;
  readonly outbox: Outbox;
  readonly hearsBroadcast: boolean;
  readonly hearsPresence: boolean;
  /** Whether it hears what it says itself. */
  readonly hearsItself: boolean;
};

/** Who is where, in this process, and what is said there. */
export class Rooms {
  readonly #occupants = new Map<string, Set<Occupant>>();

  enter(occupant: Occupant): void {
    const key = keyOf(occupant.room);
    const there = this.#occupants.get(key) ?? new Set();
    this.#occupants.set(key, there.add(occupant));
  }

  leave(occupant: Occupant): void {
    const key = keyOf(occupant.room);
    const there = this.#occupants.get(key);
    if (there?.delete(occupant) && there.size === 0) this.#occupants.delete(key);
  }

  in(room: Room): Iterable<Occupant> {
    return this.#occupants.get(keyOf(room)) ?? [];
  }

  /** To everybody there but the one who says it. Answers with whom to wait for before more is said. */
  broadcast(room: Room, broadcast: Broadcast, sayer: Occupant | null): readonly Outbox[] {
    const frames = new Map<Version, Buffer | null>();
    const due: Outbox[] = [];
    for (const occupant of this.in(room)) {
      if (!occupant.hearsBroadcast || (occupant === sayer && !occupant.hearsItself)) continue;
      const { version, topic, outbox } = occupant;
      if (!frames.has(version)) frames.set(version, broadcastFrame(version, topic, broadcast));
      const frame = frames.get(version);
      if (frame) outbox.send(frame);
      if (outbox.isDue) due.push(outbox);
    }
    return due;
  }
}

export function keyOf({ name, isPrivate }: Room): string {
  return `${isPrivate ? "private" : "public"}:${name}`;
}

/** Null for raw bytes to a client that can take only text. */
function broadcastFrame(version: Version, topic: string, broadcast: Broadcast): Buffer | null {
  const binary = version === "2.0.0" ? writeBroadcast(topic, broadcast) : null;
  if (binary) return socketFrame("binary", binary);
  if (broadcast.encoding === "raw") return null;
  const envelope = { joinRef: null, ref: null, topic, event: "broadcast" };
  return socketFrame("text", spellMessage(version, envelope, spellBroadcast(broadcast)));
}
