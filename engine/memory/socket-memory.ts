import type { Duplex } from "node:stream";
import type { Config } from "../config/config.ts";
import { ByteQuota, Reservation } from "./byte-quota.ts";

/** What a piece takes besides its bytes, however short it is. */
const CHUNK_OVERHEAD_BYTES = 256;
/** The frame of a client's ping or pong: two bytes, and four of its mask. */
const CONTROL_HEADER_BYTES = 6;

/**
 * What the clients of all WebSockets of a process may make it hold. Anybody may open one: without these quotas a few strangers
 * could fill the memory.
 */
export class SocketMemory {
  /** Joins, tokens, filters and variables, for as long as a channel or an operation is open. */
  readonly retained: ByteQuota;
  /** Each gateway keeps the presences of all the others too. */
  readonly presences: ByteQuota;
  /** GraphQL documents of open operations, with their plans. */
  readonly documents: ByteQuota;
  /** Messages that have not arrived completely, or are being handled. */
  readonly incoming: ByteQuota;
  /** What clients have not read yet. */
  readonly unsent: ByteQuota;
  readonly #perSocket: number;

  constructor({ webSocketBytes, webSocketTotalBytes }: Pick<Config, "webSocketBytes" | "webSocketTotalBytes">) {
    this.#perSocket = webSocketBytes;
    this.retained = new ByteQuota(webSocketTotalBytes);
    this.presences = new ByteQuota(webSocketTotalBytes / 4);
    this.documents = new ByteQuota(webSocketTotalBytes / 2);
    this.incoming = new ByteQuota(webSocketTotalBytes / 2);
    this.unsent = new ByteQuota(webSocketTotalBytes);
  }

  /** The quota of one socket. */
  retainedOfSocket(): ByteQuota {
    return new ByteQuota(this.#perSocket, this.retained);
  }

  presencesOfSocket(): ByteQuota {
    return new ByteQuota(this.#perSocket / 8, this.presences);
  }

  /** A document counts for each socket that uses it, and once for all of them. */
  documentsOfSocket(): ByteQuota {
    return new ByteQuota(this.#perSocket * 2);
  }
}

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
      if (this.#reservation.resize(this.#bytes + this.#chunks * CHUNK_OVERHEAD_BYTES)) onShortage();
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
    this.#controlBytes += CONTROL_HEADER_BYTES + payload.length;
    if (this.#controlBytes >= this.#bytes) this.completed();
  }
}
