import { join } from "node:path";
import type { Config } from "#config";
import type { AsOwner } from "#postgres/database";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { cacheContents } from "./cached-contents.ts";
import { collectFiles, expireUploads, noteStrayFiles } from "./collect-files.ts";
import type { FileStore } from "./file-store.ts";
import { makeFolderStore } from "./folder-store.ts";
import { makeS3Store } from "./s3-store.ts";

/** Files of a database that is not migrated yet are not served. */
const HAS_FILES = "select where pg_catalog.to_regclass('content_service.upload_parts') is not null";

export type Files = {
  readonly store: FileStore;
  /** Repeatedly deletes contents that are no longer needed. */
  keepCollected(supervisor: Supervisor): RepeatedWork;
};

const COLLECTION_PAUSE_MS = 10_000;
/** Reading all names takes a while if there are many. */
const COLLECTION_TIMEOUT_MS = 2 * 60_000;
const STRAYS_EVERY_MS = { plenty: 24 * 3_600_000, scarce: 3_600_000 };

type S3Settings = `storageS3${"Endpoint" | "Bucket" | "Region" | "AccessKeyId" | "SecretAccessKey"}`;
type StoreSettings = Pick<Config, "storageDir" | "dataDir" | S3Settings>;

/** Opens the file store of a deployment. */
export function openFileStore(settings: StoreSettings): FileStore {
  const folder = settings.storageDir ?? join(settings.dataDir, "files");
  const { storageS3Endpoint: endpoint, storageS3Bucket: bucket, storageS3Region: region } = settings;
  if (endpoint === null) return makeFolderStore(folder);
  const { storageS3AccessKeyId: accessKeyId, storageS3SecretAccessKey: secretAccessKey } = settings;
  if (accessKeyId === null || secretAccessKey === null)
    throw new Error("STORAGE_S3_ENDPOINT needs STORAGE_S3_ACCESS_KEY_ID and STORAGE_S3_SECRET_ACCESS_KEY.");
  return makeS3Store({ endpoint, bucket, region, accessKeyId, secretAccessKey }, folder);
}

/** Returns null if the database has no tables for files. */
export async function openFiles(
  config: StoreSettings & Pick<Config, "branch">,
  asOwner: AsOwner,
  log: Logger,
): Promise<Files | null> {
  const { rowCount } = await asOwner((client) => client.query(HAS_FILES));
  if (rowCount !== 1) return null;
  const store = cacheContents(openFileStore(config));
  // Objects of the database name contents that a branch does not.
  const isShared = config.branch !== null;
  const collect = isShared ? async () => undefined : oneAtATime(makeCollection(store, asOwner, log));
  const pauses = { pauseMs: COLLECTION_PAUSE_MS, timeoutMs: COLLECTION_TIMEOUT_MS };
  return { store, keepCollected: (supervisor) => supervisor.repeat("collection of files", collect, pauses) };
}

function makeCollection(store: FileStore, asOwner: AsOwner, log: Logger): () => Promise<undefined> {
  let straysNoted = Number.NEGATIVE_INFINITY;
  return async () => {
    await expireUploads(asOwner);
    const removed = await collectFiles(store, asOwner);
    if (removed > 0) log.debug({ removed }, "deleted contents that no object names any more");
    const every = STRAYS_EVERY_MS[(await store.isSpaceScarce()) ? "scarce" : "plenty"];
    if (performance.now() - straysNoted < every) return;
    await noteStrayFiles(store, asOwner);
    straysNoted = performance.now();
  };
}

/** Each run on an unresponsive file system would hold one of the few threads that all file operations share. */
function oneAtATime<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | null = null;
  return () => {
    running ??= work().finally(() => {
      running = null;
    });
    return running;
  };
}
