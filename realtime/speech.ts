import type { Broadcast } from "./broadcast-frame.ts";
import { Pacer } from "./changes/pacer.ts";
import type { Relay, Said } from "./relay.ts";
import type { Occupant, Room, Rooms } from "./rooms.ts";

/** Shorter than for changes: the stream itself waits, and with it all who listen to it. */
const PATIENCE_MS = 50;

/** What somebody says goes to those here at once, and to the other gateways. */
export class Speech {
  readonly #rooms: Rooms;
  readonly #relay: Relay;
  readonly #pacer = new Pacer(PATIENCE_MS);

  constructor(rooms: Rooms, relay: Relay) {
    this.#rooms = rooms;
    this.#relay = relay;
  }

  get isCrowded(): boolean {
    return this.#relay.isCrowded;
  }

  /** What it answers is for whoever waits until that has been passed on, which those who read slowly may delay. */
  say(room: Room, broadcast: Broadcast, sayer: Occupant | null): () => Promise<void> {
    const due = this.#rooms.broadcast(room, broadcast, sayer);
    const { event, encoding, payload } = broadcast;
    const text = payload.toString(encoding === "raw" ? "base64" : "utf8");
    const relayed = this.#relay.say({
      kind: "broadcast",
      topic: room.name,
      private: room.isPrivate,
      event,
      encoding,
      payload: text,
    });
    return async () => {
      if (due.length > 0) await this.#pacer.wait(due);
      await relayed;
    };
  }

  /** Another gateway, or SQL, has said it: one transaction may say more than anybody reads at once. */
  hear({ topic, private: isPrivate, event, encoding, payload }: Said): void | Promise<void> {
    if (typeof topic !== "string" || typeof event !== "string" || typeof payload !== "string") return;
    const broadcast: Broadcast = {
      event,
      encoding: encoding === "raw" || encoding === "whole" ? encoding : "json",
      payload: Buffer.from(payload, encoding === "raw" ? "base64" : "utf8"),
    };
    const due = this.#rooms.broadcast({ name: topic, isPrivate: isPrivate === true }, broadcast, null);
    if (due.length > 0) return this.#pacer.wait(due);
  }
}
