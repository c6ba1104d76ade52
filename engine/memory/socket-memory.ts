import type { Config } from "../config/config.ts";
import { ByteQuota } from "./byte-quota.ts";

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
