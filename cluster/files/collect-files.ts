import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import type { FileStore } from "./file-store.ts";

/** The time for which a content stays after its last object: responses that send it, backups and copies of the database may need it. */
const GRACE = { plenty: "1 day", scarce: "1 hour" };
const PORTION = 100;
/** The maximum pause of an upload; it must be resumed within this time. */
const LONGEST_PAUSE_MS = { plenty: 24 * 3_600_000, scarce: 3_600_000 };

const roomOf = async (store: FileStore) => ((await store.isSpaceScarce()) ? "scarce" : "plenty");

/** Deletes contents that objects no longer name. Several processes may run it at once. */
export async function collectFiles(store: FileStore, asOwner: AsOwner, grace?: string): Promise<number> {
  const lasting = grace ?? GRACE[await roomOf(store)];
  let removed = 0;
  for (;;) {
    const count = await inOwnerTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ hash: string }>(
        "select hash::pg_catalog.text from content_service.take_unused_files($1::interval, $2) as hash",
        [lasting, PORTION],
      );
      // The files are removed before the commit: until then nobody can name these contents again.
      await store.remove(rows.map(({ hash }) => hash));
      return rows.length;
    });
    removed += count;
    if (count < PORTION) return removed;
  }
}

/** Finds contents that the database does not know, from uploads that ended before their commit, so that they are collected too. */
export async function noteStrayFiles(store: FileStore, asOwner: AsOwner): Promise<void> {
  const pause = LONGEST_PAUSE_MS[await roomOf(store)];
  await store.removeDrafts(pause);
  await store.uploads().removeOlder(pause);
  for await (const hashes of store.list()) {
    await asOwner((client) => client.query("select content_service.note_stray_files($1)", [hashes]));
  }
}

/** Releases the parts of uploads that were not finished. */
export async function expireUploads(asOwner: AsOwner): Promise<void> {
  await asOwner((client) =>
    client.query("select content_service.expire_uploads($1)", [`${LONGEST_PAUSE_MS.plenty} ms`]),
  );
}
