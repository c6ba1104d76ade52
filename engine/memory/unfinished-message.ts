import type { Duplex } from "node:stream";
import { ByteQuota, Reservation } from "./byte-quota.ts";

/** What a piece takes besides its bytes, however short it is. */
const CHUNK_BYTES = 256;
/** The frame of a client's ping or pong: two bytes, and four of its mask. */
const CONTROL_HEAD_BYTES = 6;

/**
 * What has arrived of a WebSocket's message that is not complete: its frames are kept in memory until the last one is there, which a
 * client may never send.
 */
export class UnfinishedMessage {
  readonly #reservation: Reservation;
  #bytes = 0;
  #chunks = 0;
  /** Of the bytes, those of pings and pongs. */
  #controlBytes = 0;

  /** To be made when the socket's frames are read already. `onShortage` is to end the socket. */
  constructor(socket: Duplex, quota: ByteQuota, onShortage: () => void) {
    this.#reservation = new Reservation(new ByteQuota(Number.POSITIVE_INFINITY, quota));
    // Ahead of whoever reads the frames, and says then what was complete.
    socket.prependListener("data", ({ length }: Buffer) => {
      this.#bytes += length;
      this.#chunks++;
      if (this.#reservation.resize(this.#bytes + this.#chunks * CHUNK_BYTES)) onShortage();
    });
    socket.once("close", () => this.completed());
  }

  completed(): void {
    this.#bytes = 0;
    this.#chunks = 0;
    this.#controlBytes = 0;
    this.#reservation.release();
  }

  /** A ping or a pong has arrived, which may be in the middle of a message. */
  controlFrame(payload: Buffer): void {
    this.#controlBytes += CONTROL_HEAD_BYTES + payload.length;
    if (this.#controlBytes >= this.#bytes) this.completed();
  }
}
