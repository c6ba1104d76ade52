import pg from "pg";
import { afterEach, beforeAll } from "vitest";
import { openReplication } from "../../../live/stream/change-stream.ts";
import type {
  ChangeFollower,
  CommittedTransaction,
  HistoryPosition,
  LogicalMessage,
  ReplicationGap,
  ReplicationOptions,
  ReplicationStream,
  RowChange,
} from "../../../live/stream/changes.ts";
import type { Lsn } from "../../../postgres/database/lsn.ts";
import { useClient, useDatabase } from "../../database.ts";

/** All that a follower was told, in order. */
export class Followed implements ChangeFollower {
  readonly committed: CommittedTransaction[] = [];
  readonly changes: RowChange[] = [];
  readonly messages: LogicalMessage[] = [];
  readonly gaps: ReplicationGap[] = [];
  begun: CommittedTransaction[] = [];
  /** Runs before each change, so that tests can slow it down. */
  beforeEach: () => void | Promise<void> = () => {};

  wants(): boolean {
    return true;
  }

  begin(transaction: CommittedTransaction): void {
    this.begun.push(transaction);
  }

  change(change: RowChange): void | Promise<void> {
    this.changes.push(change);
    return this.beforeEach();
  }

  message(message: LogicalMessage): void {
    this.messages.push(message);
  }

  commit(transaction: CommittedTransaction): void {
    this.committed.push(transaction);
  }

  gap(gap: ReplicationGap): void {
    this.gaps.push(gap);
  }

  /** Returns the values of one column in new rows. */
  values(column = 0): (string | null | undefined)[] {
    return this.changes.map((change) => change.new?.[column]);
  }
}

export const QUIET = { info: () => {}, warn: () => {}, error: () => {} };

export function changesOf(url: string, options: Partial<ReplicationOptions> = {}): ReplicationStream {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", () => {});
  const asOwner: ReplicationOptions["asOwner"] = async (work) => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  };
  const changes = openReplication({ url, asOwner, publication: "followed", log: QUIET, ...options });
  return {
    state: () => changes.state(),
    statistics: () => changes.statistics(),
    follow: (follower, from) => changes.follow(follower, from),
    emit: (prefix, content) => changes.emit(prefix, content),
    close: async () => {
      await changes.close();
      if (!pool.ending) await pool.end();
    },
  };
}

/** A position of the history that the stream is in. */
export function since(changes: ReplicationStream, lsn: Lsn): HistoryPosition {
  return { lsn, history: changes.state().history!.id };
}

/** A database of one's own with table `items` in publication `followed`. */
export function useFollowed() {
  const database = useDatabase({ template: "empty" });
  const owner = useClient(database.ownerUrl);
  const opened: ReplicationStream[] = [];

  beforeAll(async () => {
    // Commits are then in the part of the log that has been read, and no follower that comes next gets them.
    await owner.query(`
      alter database ${pg.escapeIdentifier(database.name)} set synchronous_commit = on;
      set synchronous_commit = on`);
    await owner.query(`
      create table items (id int primary key, name text);
      alter table items replica identity full;
      create publication followed for table items with (publish_via_partition_root = true)`);
  });
  afterEach(async () => {
    for (const changes of opened.splice(0)) await changes.close();
  });
  return {
    database,
    owner,
    open: (options: Partial<ReplicationOptions> = {}) => {
      const changes = changesOf(database.ownerUrl, options);
      opened.push(changes);
      return changes;
    },
    killReaders: () =>
      owner.query("select pg_terminate_backend(active_pid) from pg_replication_slots where database = $1", [
        database.name,
      ]),
    slots: async () => {
      const { rows } = await owner.query<{
        slot_name: string;
        temporary: boolean;
        confirmed_flush_lsn: string;
      }>("select * from pg_replication_slots where database = $1 order by temporary", [database.name]);
      return rows;
    },
  };
}
