import type pg from "pg";
import type { FileStore } from "#files";
import type { DoctorFinding } from "./facts.ts";

const HAS_FILES = "select pg_catalog.to_regclass('content_service.upload_parts') is not null as has_files";
const NAMED = `
  select objects.content as hash, pg_catalog.min(objects.bucket_id || '/' || objects.name) as object from storage.objects
  where objects.content is not null group by objects.content`;
const UNKNOWN = `
  select pg_catalog.count(*)::int as unknown from pg_catalog.unnest($1::pg_catalog.text[]) as stored (hash)
  where not exists (select from content_service.files where files.hash = stored.hash)`;
const MOST_SHOWN = 10;

/** Finds objects whose file is not in the file store, and files that no row names. */
export async function readFileFindings(owner: pg.ClientBase, store: FileStore): Promise<DoctorFinding[]> {
  const { rows: found } = await owner.query<{ has_files: boolean }>(HAS_FILES);
  if (!found[0]!.has_files) return [];
  // Reads the rows before it lists the files; otherwise the list would miss the file of an object that is added meanwhile.
  const { rows: named } = await owner.query<{ hash: string; object: string }>(NAMED);
  const stored = new Set<string>();
  let unknown = 0;
  for await (const hashes of store.list()) {
    for (const hash of hashes) stored.add(hash);
    const { rows } = await owner.query<{ unknown: number }>(UNKNOWN, [hashes]);
    unknown += rows[0]!.unknown;
  }
  return [...missingFiles(named.filter(({ hash }) => !stored.has(hash))), ...unknownFiles(unknown)];
}

function missingFiles(missing: readonly { readonly object: string }[]): DoctorFinding[] {
  if (missing.length === 0) return [];
  const shown = missing.slice(0, MOST_SHOWN).map(({ object }) => object);
  const more = missing.length > shown.length ? [`${missing.length - shown.length} more`] : [];
  return [
    {
      kind: "danger",
      problem: `The file store lacks the files of ${missing.length === 1 ? "an object" : `${missing.length} objects`}: ${[...shown, ...more].join(", ")}.`,
      fix: "See whether STORAGE_DIR or STORAGE_S3_BUCKET is the right one; restore the files from a backup, or delete these rows.",
    },
  ];
}

function unknownFiles(count: number): DoctorFinding[] {
  if (count === 0) return [];
  return [
    {
      kind: "advice",
      problem: `The file store has ${count === 1 ? "a file" : `${count} files`} without a row.`,
      fix: "Nothing to do: the service notes such files once a day, and deletes them a day later.",
    },
  ];
}
