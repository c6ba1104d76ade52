import { readFile } from "node:fs/promises";

type ManifestFile = { readonly size: number; readonly sha256: string };
export type BaseManifest = { readonly files: ReadonlyMap<string, ManifestFile>; readonly bytes: number };

type ManifestEntry = {
  readonly Path?: string;
  readonly "Encoded-Path"?: string;
  readonly Size: number;
  readonly Checksum?: string;
};

/** Reads Postgres's backup manifest: the size and checksum of each file, by its path. */
export async function readManifest(file: string): Promise<BaseManifest> {
  const { Files: entries } = JSON.parse(await readFile(file, "utf8")) as { Files: readonly ManifestEntry[] };
  const files = new Map<string, ManifestFile>();
  for (const entry of entries) {
    // Names that are not UTF-8 are encoded.
    const path = entry.Path ?? Buffer.from(entry["Encoded-Path"] ?? "", "hex").toString("latin1");
    files.set(path, { size: entry.Size, sha256: entry.Checksum ?? "" });
  }
  return { files, bytes: entries.reduce((sum, { Size }) => sum + Size, 0) };
}
