import { type AsOwner, formatLsn, type Lsn, parseLsn } from "#postgres/database";
import type { PeerWorkers } from "#runtime/concurrency";

// A commit waits until its record is flushed, unless it is asynchronous.
const READ_POSITION = `select case pg_catalog.current_setting('synchronous_commit')
  when 'off' then pg_catalog.pg_current_wal_insert_lsn() else pg_catalog.pg_current_wal_flush_lsn() end::pg_catalog.text as position`;

type WritePositionsOptions = {
  readonly asOwner: AsOwner;
  readonly peers: PeerWorkers;
  /** Called with null if the position of a write is unknown. */
  onWrite(position: Lsn | null): void;
};

/** Where in the log the writes of this service end, of all workers. */
export class WritePositions {
  readonly #options: WritePositionsOptions;
  #reading: Promise<unknown> = Promise.resolve();
  #next: Promise<Lsn> | null = null;

  constructor(options: WritePositionsOptions) {
    this.#options = options;
    options.peers.subscribe("cache", (content) => options.onWrite(parseLsn(String(content))));
  }

  /** To be called after a commit. Resolves when all workers know of it; null: its position is unknown. */
  async record(): Promise<Lsn | null> {
    const { peers, onWrite } = this.#options;
    const position = await this.#read().catch(() => null);
    onWrite(position);
    await peers.publish("cache", position === null ? "" : formatLsn(position));
    return position;
  }

  /** One query serves all commits before it. */
  #read(): Promise<Lsn> {
    this.#next ??= this.#reading.then(() => {
      const read = this.#query();
      this.#next = null;
      this.#reading = read.catch(() => {});
      return read;
    });
    return this.#next;
  }

  async #query(): Promise<Lsn> {
    const { rows } = await this.#options.asOwner((client) => client.query<{ position: string }>(READ_POSITION));
    return parseLsn(rows[0]!.position)!;
  }
}
