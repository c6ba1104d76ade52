import type pg from "pg";
import { collectFiles, type FileStore } from "#files";
import type { AsOwner } from "#postgres/database";

const NAMED = "select distinct content as hash from storage.objects where content is not null";

/** Rows whose file is not in the store. */
export async function countRowsWithoutFile(owner: pg.ClientBase, store: FileStore): Promise<number> {
  const { rows } = await owner.query<{ hash: string }>(NAMED);
  let missing = 0;
  for (const { hash } of rows) {
    const file = await store.open(hash);
    if (file) await file.close();
    else missing++;
  }
  return missing;
}

/** Deletes contents that no row names, without the time of grace. */
export async function collectNow(owner: pg.ClientBase, store: FileStore): Promise<number> {
  const asOwner: AsOwner = (work) => work(owner as pg.Client);
  return collectFiles(store, asOwner, "0 seconds");
}

/** Files that are left after everything was deleted and collected. */
export async function countFilesLeft(owner: pg.ClientBase, store: FileStore): Promise<number> {
  await owner.query("delete from storage.objects; delete from content_service.unfinished_uploads");
  await store.removeDrafts(-60_000);
  await store.uploads().removeOlder(-60_000);
  for await (const hashes of store.list()) await owner.query("select content_service.note_stray_files($1)", [hashes]);
  await collectNow(owner, store);
  let left = 0;
  for await (const hashes of store.list()) left += hashes.length;
  return left;
}
