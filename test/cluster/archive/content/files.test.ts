import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { restoreArchive, writeArchive } from "../../../../cluster/archive/index.ts";
import { type FileStore, makeFolderStore } from "../../../../cluster/files/index.ts";
import { cloneDatabase, type TestDatabase, urlOf, useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";

const CONTENTS = [Buffer.from("small"), Buffer.alloc(0), Buffer.alloc(1_000_003, "large ")];

let store: FileStore;
const hashes: string[] = [];

const folder = useFolder("archived-files-");
beforeAll(async () => {
  store = makeFolderStore(join(folder, "files"));
});
const source = useDatabase({ template: "platform" });
beforeAll(() =>
  inDatabase(source, async (client) => {
    await client.query("insert into storage.buckets (id, name) values ('notes', 'notes')");
    for (const [number, content] of CONTENTS.entries()) {
      const draft = await store.draft(Readable.from([content]), content.length);
      await draft.publish();
      hashes.push(draft.hash);
      await client.query("select content_service.keep_file($1, $2)", [draft.hash, content.length]);
      await client.query("select storage.put_object('notes', $1, null, '{}', null, 'v1', false)", [`n${number}`]);
      await client.query("select content_service.name_content('notes', $1, $2)", [`n${number}`, draft.hash]);
    }
  }),
);

const settingsFor = (url: string) => ({ url, shadowUrl: "", rootUrl: urlOf("postgres", "postgres") });

async function inDatabase<T>({ ownerUrl }: TestDatabase, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function readAll(from: FileStore, hash: string): Promise<Buffer> {
  const file = (await from.open(hash))!;
  const content = await file.read({ start: 0, end: file.bytes - 1 });
  return content instanceof Readable ? buffer(content) : content;
}

test("a backup has the contents of the files that objects name, and restores them", async () => {
  const file = join(folder, "with.backup.gz");
  expect(await writeArchive(source.ownerUrl, file, { store })).toMatchObject({ files: 3 });
  const target = await cloneDatabase("empty");
  try {
    const restored = makeFolderStore(join(folder, "restored"));
    const result = await restoreArchive(file, settingsFor(target.ownerUrl), { store: restored });
    expect(result.files).toBe(3);
    for (const [number, hash] of hashes.entries()) {
      expect((await readAll(restored, hash)).equals(CONTENTS[number]!)).toBe(true);
    }
    const named = await inDatabase(target, (client) =>
      client.query("select content from storage.objects order by name"),
    );
    expect(named.rows.map(({ content }) => content)).toEqual(hashes);
  } finally {
    await target.drop();
  }
});

test("a backup fails if a content is missing, unless files are left out", async () => {
  const none = makeFolderStore(join(folder, "none"));
  const file = join(folder, "without.backup.gz");
  await expect(writeArchive(source.ownerUrl, file, { store: none })).rejects.toThrow("is not in the file store");
  expect(await writeArchive(source.ownerUrl, file)).toMatchObject({ files: 0 });
});
