import type { Duplex } from "node:stream";
import type { Config } from "#config";
import { ByteQuota, Reservation } from "#runtime";

/** The overhead of a chunk besides its bytes. */
const CHUNK_OVERHEAD_BYTES = 256;
/** The header of a client's ping or pong frame: two bytes and a mask of four. */
const CONTROL_HEADER_BYTES = 6;

/**
 * Quotas for the memory that WebSocket clients occupy in this process. Anybody may open a socket: without quotas a few
 * clients could exhaust the memory.
 */
export class SocketMemory {
  /** The memory of joins, tokens, filters and variables while a channel or an operation is open. */
  readonly retained: ByteQuota;
  /** The memory of presences, including those of all other gateways. */
  readonly presences: ByteQuota;
  /** The memory of GraphQL documents of open operations, with their plans. */
  readonly documents: ByteQuota;
  /** The memory of messages that have not arrived completely, or are being handled. */
  readonly incoming: ByteQuota;
  /** The memory of data that clients have not read yet. */
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

  /** Returns the quota of one socket. */
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
 * Counts the received part of an incomplete WebSocket message: its frames are kept until the last one arrives, which a
 * client may never send.
 */
export class UnfinishedMessage {
  readonly #reservation: Reservation;
  #bytes = 0;
  #chunks = 0;
  /** The part of those bytes that are pings and pongs. */
  #controlBytes = 0;

  /** Created after the frame reader is attached to the socket. `onShortage` must close the socket. */
  constructor(socket: Duplex, quota: ByteQuota, onShortage: () => void) {
    this.#reservation = new Reservation(new ByteQuota(Number.POSITIVE_INFINITY, quota));
    // Runs before the frame reader, which reports complete messages.
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

  /** Handles a ping or pong, possibly within a message. */
  controlFrame(payload: Buffer): void {
    this.#controlBytes += CONTROL_HEADER_BYTES + payload.length;
    if (this.#controlBytes >= this.#bytes) this.completed();
  }
}
