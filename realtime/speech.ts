import type { Broadcast } from "./broadcast-frame.ts";
import type { Relay, Said } from "./relay.ts";
import type { Occupant, Room, Rooms } from "./rooms.ts";

/** What somebody says goes to those here at once, and to the other gateways. */
export class Speech {
  readonly #rooms: Rooms;
  readonly #relay: Relay;

  constructor(rooms: Rooms, relay: Relay) {
    this.#rooms = rooms;
    this.#relay = relay;
  }

  get isCrowded(): boolean {
    return this.#relay.isCrowded;
  }

  /** Resolves when it has been passed on. */
  async say(room: Room, broadcast: Broadcast, sayer: Occupant | null): Promise<void> {
    this.#rooms.broadcast(room, broadcast, sayer);
    const { event, encoding, payload } = broadcast;
    const text = payload.toString(encoding === "raw" ? "base64" : "utf8");
    await this.#relay.say({
      kind: "broadcast",
      topic: room.name,
      private: room.isPrivate,
      event,
      encoding,
      payload: text,
    });
  }

  /** Another gateway, or SQL, has said it. */
  hear({ topic, private: isPrivate, event, encoding, payload }: Said): void {
    if (typeof topic !== "string" || typeof event !== "string" || typeof payload !== "string") return;
    const isRaw = encoding === "raw";
    const broadcast: Broadcast = {
      event,
      encoding: isRaw ? "raw" : "json",
      payload: Buffer.from(payload, isRaw ? "base64" : "utf8"),
    };
    this.#rooms.broadcast({ name: topic, isPrivate: isPrivate === true }, broadcast, null);
  }
}
