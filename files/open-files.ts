import { join } from "node:path";
import type { Config } from "#config";
import type { AsOwner } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { collectFiles, noteStrayFiles } from "./collect-files.ts";
import type { FileStore } from "./file-store.ts";
import { makeFolderStore } from "./folder-store.ts";

const HAS_FILES = `select from pg_catalog.pg_attribute
  where attrelid = pg_catalog.to_regclass('storage.objects') and attname = 'content' and not attisdropped`;

export type Files = {
  readonly store: FileStore;
  /** Deletes what is not needed any more; called regularly. */
  tend(): Promise<void>;
};

type StoreSettings = Pick<Config, "storageDir" | "dataDir">;

/** The file store of a deployment. */
export function openFileStore({ storageDir, dataDir }: StoreSettings): FileStore {
  return makeFolderStore(storageDir ?? join(dataDir, "files"));
}

/** Null if the database has no tables for files. */
export async function openFiles(config: StoreSettings, asOwner: AsOwner, log: Logger): Promise<Files | null> {
  const { rowCount } = await asOwner((client) => client.query(HAS_FILES));
  if (rowCount !== 1) return null;
  const store = openFileStore(config);
  return { store, tend: makeTending(store, asOwner, log) };
}

/** Reading all names takes a while if there are many. */
const STRAYS_EVERY_MS = { plenty: 24 * 3_600_000, scarce: 3_600_000 };

function makeTending(store: FileStore, asOwner: AsOwner, log: Logger): () => Promise<void> {
  let straysNoted = Number.NEGATIVE_INFINITY;
  return async () => {
    const removed = await collectFiles(store, asOwner);
    if (removed > 0) log.debug({ removed }, "deleted contents that no object names any more");
    const every = STRAYS_EVERY_MS[(await store.isSpaceScarce()) ? "scarce" : "plenty"];
    if (performance.now() - straysNoted < every) return;
    straysNoted = performance.now();
    await noteStrayFiles(store, asOwner);
  };
}
