import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { chmod, copyFile, mkdir, open, truncate } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { chownTo, type SystemAccount } from "../embedded/processes.ts";
import { type ArchivedSegment, type BaseBackup, COMPRESSED_SUFFIX, PARTIAL_SUFFIX } from "./archive-folder.ts";
import { BASE_FILE, MANIFEST_FILE } from "./base-backup.ts";
import { type BaseManifest, readManifest } from "./base-manifest.ts";
import { readTar, type TarEntry } from "./tar-reader.ts";

/** Unpacks a base backup, and compares each file with the manifest. */
export async function unpackBase(
  { folder }: Pick<BaseBackup, "folder">,
  target: string,
  account: SystemAccount | null,
): Promise<void> {
  const manifest = await readManifest(join(folder, MANIFEST_FILE));
  const missing = new Set(manifest.files.keys());
  await makeFolder(target, account);
  const source = createReadStream(join(folder, BASE_FILE));
  const unzipped = createGunzip();
  source.on("error", (error) => unzipped.destroy(error));
  try {
    for await (const entry of readTar(source.pipe(unzipped))) {
      await unpackEntry(entry, target, account, manifest);
      missing.delete(entry.path);
    }
  } catch (error) {
    throw new Error(`The base backup ${folder} cannot be read: ${(error as Error).message}`, { cause: error });
  } finally {
    source.destroy();
  }
  if (missing.size > 0)
    throw new Error(`The base backup ${folder} lacks ${missing.size} files, such as ${[...missing][0]}.`);
}

async function unpackEntry(
  entry: TarEntry,
  target: string,
  account: SystemAccount | null,
  { files }: BaseManifest,
): Promise<void> {
  const path = resolve(target, entry.path);
  if (path !== target && !path.startsWith(`${target}${sep}`))
    throw new Error(`${entry.path} is outside of the folder.`);
  if (entry.kind === "link")
    throw new Error(`${entry.path} is a symbolic link, of a tablespace or of the WAL's folder.`);
  if (entry.kind === "folder") {
    await makeFolder(path, account);
    return;
  }
  await makeFolder(dirname(path), account);
  const hash = createHash("sha256");
  const file = await open(path, "w", 0o600);
  try {
    for await (const part of entry.content()) {
      hash.update(part);
      await file.write(part);
    }
  } finally {
    await file.close();
  }
  await chownTo(account, path);
  const expected = files.get(entry.path);
  // The manifest does not list itself; backup_label and tablespace_map are partly described elsewhere.
  if (!expected) return;
  if (entry.size !== expected.size || hash.digest("hex") !== expected.sha256.toLowerCase()) {
    throw new Error(`${entry.path} is damaged: it differs from the manifest.`);
  }
}

/** Copies WAL to the place where the server looks for it. */
export async function unpackSegments(
  segments: readonly ArchivedSegment[],
  {
    target,
    segmentBytes,
    account,
  }: {
    /** The folder `pg_wal`. */
    readonly target: string;
    readonly segmentBytes: number;
    readonly account: SystemAccount | null;
  },
): Promise<void> {
  await makeFolder(target, account);
  for (const { name, file } of segments) {
    const path = join(target, name);
    await unpackSegment(join(dirname(file), name), path, segmentBytes);
    await chownTo(account, path);
  }
}

/** A running service completes and compresses segments meanwhile: the file may have been renamed. */
async function unpackSegment(source: string, path: string, segmentBytes: number): Promise<void> {
  for (const suffix of [PARTIAL_SUFFIX, "", COMPRESSED_SUFFIX]) {
    try {
      if (suffix === COMPRESSED_SUFFIX) await unzip(`${source}${suffix}`, path);
      else await copyPadded(`${source}${suffix}`, path, segmentBytes);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT" && suffix !== COMPRESSED_SUFFIX) continue;
      throw new Error(`The WAL segment ${source} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }
}

async function unzip(source: string, path: string): Promise<void> {
  await pipeline(createReadStream(source), createGunzip(), createWriteStream(path, { mode: 0o600 }));
}

/** Zeros end the WAL. */
async function copyPadded(source: string, path: string, segmentBytes: number): Promise<void> {
  await copyFile(source, path);
  await chmod(path, 0o600);
  await truncate(path, segmentBytes);
}

async function makeFolder(folder: string, account: SystemAccount | null): Promise<void> {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (made !== undefined) await chownTo(account, folder);
}
