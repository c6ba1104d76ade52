import { PassThrough, Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type pg from "pg";
import type { DraftFile, FileStore } from "#files";
import type { ArchiveLine } from "./archive-format.ts";

/** The size is a multiple of three, so that pieces of base64 can be joined. */
const CHUNK_BYTES = 96 * 1024;

/** Selects the contents that objects and parts of uploads name, in the snapshot of the transaction. */
const namedFiles = ({ schema, hasParts }: FileTables) => `
  select hash from ${schema}.files where exists (select from storage.objects where objects.content = files.hash)
    ${hasParts ? `or exists (select from ${schema}.upload_parts where upload_parts.content = files.hash)` : ""} order by hash`;

/**
 * The tables for files. The schema of the service is `private` in databases of earlier versions, some of which have no parts
 * of uploads.
 */
type FileTables = { readonly schema: "content_service" | "private"; readonly hasParts: boolean };
const FILE_TABLES = `
  select schema, pg_catalog.to_regclass(schema operator(pg_catalog.||) '.upload_parts') is not null as "hasParts"
  from pg_catalog.unnest('{content_service,private}'::pg_catalog.text[]) with ordinality as known (schema, position)
  where pg_catalog.to_regclass(schema operator(pg_catalog.||) '.files') is not null and pg_catalog.to_regclass('storage.objects') is not null
  order by position limit 1`;

/** Streams the contents of the database's objects. Bytes stay for a day after their row, so those of the snapshot are still there. */
export async function* fileLines(client: pg.ClientBase, store: FileStore): AsyncGenerator<ArchiveLine> {
  const [tables] = (await client.query<FileTables>(FILE_TABLES)).rows;
  if (!tables) return;
  const { rows } = await client.query<{ hash: string }>(namedFiles(tables));
  for (const { hash } of rows) {
    const file = await store.open(hash);
    if (!file) {
      throw new Error(
        `The content ${hash} of an object is not in the file store. Set STORAGE_DIR to its folder, or leave the files out: --without-files.`,
      );
    }
    yield { file: hash };
    if (file.bytes === 0) {
      await file.close();
      continue;
    }
    const content = await file.read({ start: 0, end: file.bytes - 1 });
    for await (const chunk of evenChunks(Buffer.isBuffer(content) ? Readable.from([content]) : content)) {
      yield chunk.toString("base64");
    }
  }
}

async function* evenChunks(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of content) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    for (; rest.length >= CHUNK_BYTES; rest = rest.subarray(CHUNK_BYTES)) yield rest.subarray(0, CHUNK_BYTES);
  }
  if (rest.length > 0) yield rest;
}

/** Puts the contents of a backup into a file store. */
export class FileRestorer {
  readonly #store: FileStore;
  #current: { readonly hash: string; readonly content: PassThrough; readonly draft: Promise<DraftFile> } | null = null;

  constructor(store: FileStore) {
    this.#store = store;
  }

  async start(hash: string): Promise<void> {
    await this.end();
    const content = new PassThrough();
    const draft = this.#store.draft(content, Number.POSITIVE_INFINITY);
    // Its error is thrown by `end`.
    draft.catch((error) => content.destroy(error));
    this.#current = { hash, content, draft };
  }

  async add(line: string): Promise<void> {
    const { content } = this.#current!;
    if (!content.write(Buffer.from(line, "base64"))) await drained(content);
  }

  /** Must be called after the last line. */
  async end(): Promise<void> {
    if (!this.#current) return;
    const { hash, content, draft: drafting } = this.#current;
    this.#current = null;
    content.end();
    const draft = await drafting;
    try {
      if (draft.hash !== hash) throw new Error(`The content ${hash} is damaged in the backup.`);
      await draft.publish();
    } finally {
      await draft.discard();
    }
  }
}

/** Resolves also if the content has failed. */
async function drained(content: PassThrough): Promise<void> {
  const ended = finished(content).catch(() => {});
  await Promise.race([new Promise((resolve) => content.once("drain", resolve)), ended]);
}
