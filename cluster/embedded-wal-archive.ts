import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Config, isEmbedded } from "#config";
import { withClient } from "#postgres/client";
import type { Logger } from "#runtime/log";
import { clusterFolders } from "./embedded/cluster-folders.ts";
import type { PostgresUrls } from "./served-postgres.ts";
import { walFolder } from "./wal-archive/archive-folder.ts";
import { checkWalArchive } from "./wal-archive/check-wal-archive.ts";
import { dropWalSlot, WAL_SLOT } from "./wal-archive/open-archive.ts";
import { WalArchiver, type WalArchiveState } from "./wal-archive/wal-archiver.ts";

/** The folder is in DATA_DIR, which has space for a database of this size, unlike some temporary folders. */
const CHECK_FOLDER = "wal-check";

type EmbeddedWalArchiveOptions = {
  readonly config: Config;
  readonly postgres: Pick<PostgresUrls, "directUrl">;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly onChange?: (state: WalArchiveState) => void;
};

/** Archives the WAL of the embedded Postgres, in the process that has started it; null if archiving is off. */
export async function openWalArchive(options: EmbeddedWalArchiveOptions): Promise<WalArchiver | null> {
  const { config, postgres, log } = options;
  const { directUrl: url } = postgres;
  if (!isEmbedded(config)) {
    if (config.archivesWal) {
      log.warn(
        "BACKUP_WAL is ignored, because DATABASE_URL is a server of its own: archive its WAL with pgBackRest, WAL-G or the " +
          "provider's point-in-time recovery",
      );
    }
    return null;
  }
  if (!config.archivesWal) {
    // A slot is a folder, so most starts need no session to learn that there is none.
    if (existsSync(join(clusterFolders(config.dataDir).data, "pg_replslot", WAL_SLOT)))
      await withClient(url, (client) => dropWalSlot((text, values) => client.query(text, values)));
    return null;
  }
  return new WalArchiver({
    ...options,
    dataDir: config.dataDir,
    folder: walFolder(config.backupDir),
    url,
    baseHours: config.walBaseHours,
    keepDays: config.walKeepDays,
    reserveBytes: config.walReserve * 2 ** 20,
    check: config.checksWal ? (archive) => checkWalArchive(archive, join(config.dataDir, CHECK_FOLDER)) : null,
  });
}
