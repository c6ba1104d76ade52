import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { FileStore } from "#files";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import type { ListedObject, SourceBucket, StorageSource } from "./storage-source.ts";

type CopiedFiles = {
  readonly copied: number;
  readonly bytes: number;
  /** The number of objects that existed here already. */
  readonly skipped: number;
  /** The objects that could not be copied, with the reason. */
  readonly failures: readonly string[];
};

type ImportOptions = {
  readonly store: FileStore;
  readonly asOwner: AsOwner;
  /** The buckets to copy; all buckets if the list is empty. */
  readonly buckets: readonly string[];
  readonly report: (line: string) => void;
};

/** Copies buckets and objects. Objects that exist here with the same tag and size are skipped, so an interrupted import can go on. */
export async function importFiles(source: StorageSource, options: ImportOptions): Promise<CopiedFiles> {
  const { buckets: wanted, asOwner, report } = options;
  const all = await source.listBuckets();
  const missing = wanted.filter((id) => !all.some((bucket) => bucket.id === id));
  if (missing.length > 0) throw new Error(`The source has no bucket ${missing.join(", ")}.`);
  const total = { copied: 0, bytes: 0, skipped: 0, failures: [] as string[] };
  for (const bucket of all) {
    if (wanted.length > 0 && !wanted.includes(bucket.id)) continue;
    await asOwner((client) => addBucket(client, bucket));
    const before = total.copied + total.skipped;
    for await (const objects of source.listObjects(bucket.id)) {
      const present = await asOwner((client) => findPresent(client, bucket.id, objects));
      for (const object of objects) {
        if (present.has(object.name)) {
          total.skipped++;
          continue;
        }
        try {
          total.bytes += await importObject(source, bucket.id, object, options);
          total.copied++;
        } catch (error) {
          total.failures.push(`${bucket.id}/${object.name}: ${(error as Error).message}`);
        }
      }
    }
    report(`${bucket.id}: ${total.copied + total.skipped - before} objects`);
  }
  return total;
}

/** Creates the bucket. A bucket that exists here keeps its settings. */
async function addBucket(client: pg.ClientBase, bucket: SourceBucket): Promise<void> {
  await client.query(
    `insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types, created_at)
     values ($1, $2, $3, $4, $5, coalesce($6, pg_catalog.now())) on conflict do nothing`,
    [
      bucket.id,
      bucket.name,
      bucket.public,
      bucket.file_size_limit ?? null,
      bucket.allowed_mime_types ?? null,
      bucket.created_at ?? null,
    ],
  );
}

async function findPresent(
  client: pg.ClientBase,
  bucket: string,
  objects: readonly ListedObject[],
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ name: string; tag: string | null; size: string | null }>(
    `select name, metadata ->> 'eTag' as tag, metadata ->> 'size' as size from storage.objects
     where bucket_id operator(pg_catalog.=) $1 and name operator(pg_catalog.=) any ($2) and content is not null`,
    [bucket, objects.map(({ name }) => name)],
  );
  const known = new Map(rows.map(({ name, tag, size }) => [name, `${tag} ${size}`]));
  const unchanged = objects.filter(
    ({ name, metadata }) => metadata?.eTag !== undefined && known.get(name) === `${metadata.eTag} ${metadata.size}`,
  );
  return new Set(unchanged.map(({ name }) => name));
}

/** Works like an upload: the bytes are safe before the row that names them is committed. */
async function importObject(
  source: StorageSource,
  bucket: string,
  object: ListedObject,
  { store, asOwner }: ImportOptions,
): Promise<number> {
  const { userMetadata, content } = await source.open(bucket, object.name);
  const draft = await store.draft(content, Number.MAX_SAFE_INTEGER);
  try {
    const size = object.metadata?.size;
    if (typeof size === "number" && size !== draft.bytes)
      throw new Error(`received ${draft.bytes} bytes of ${size}; run the command again`);
    await inOwnerTransaction(asOwner, async (client) => {
      await client.query("select content_service.keep_file($1, $2)", [draft.hash, draft.bytes]);
      await draft.publish();
      await client.query(PUT_OBJECT, [
        bucket,
        object.name,
        JSON.stringify({ ...object.metadata, size: draft.bytes }),
        userMetadata && JSON.stringify(userMetadata),
        object.created_at,
        object.updated_at,
        object.last_accessed_at ?? object.updated_at,
        randomUUID(),
        draft.hash,
      ]);
    });
    return draft.bytes;
  } finally {
    await draft.discard();
  }
}

/** One statement, so that the times of a new object stay those of the source. */
const PUT_OBJECT = `with kept as (
    update content_service.files set released_at = null where hash operator(pg_catalog.=) $9
  )
  insert into storage.objects (
    bucket_id, name, metadata, user_metadata, created_at, updated_at, last_accessed_at, version, content
  ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict (bucket_id, name) do update set
    metadata = excluded.metadata, user_metadata = excluded.user_metadata, version = excluded.version,
    content = excluded.content`;
