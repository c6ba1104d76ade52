import { expect, test } from "vitest";
import { makeFolderStore } from "../../../cluster/files/index.ts";
import { readFileFindings } from "../../../operations/doctor/file-checks.ts";
import { cloneDatabase, useClient, useDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { useFolder } from "../../fixture.ts";

const folder = useFolder("doctor-");
const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);

test("rows without a file and files without a row are reported", async () => {
  const store = makeFolderStore(folder);
  const problems = async () => (await readFileFindings(owner, store)).map(({ kind, problem }) => `${kind}: ${problem}`);
  const hashes: string[] = [];
  for (const content of ["named", "unknown", "lost"]) {
    const draft = await store.draft(asChunks(content), 100);
    await draft.publish();
    hashes.push(draft.hash);
  }
  const [named, , lost] = hashes;
  await owner.query("insert into storage.buckets (id, name) values ('notes', 'notes')");
  for (const [name, hash] of [
    ["here", named],
    ["gone", lost],
  ]) {
    await owner.query("insert into content_service.files (hash, bytes) values ($1, 1)", [hash]);
    await owner.query("insert into storage.objects (bucket_id, name, content) values ('notes', $1, $2)", [name, hash]);
  }
  expect(await problems()).toEqual(["advice: The file store has a file without a row."]);
  await store.remove([lost!]);
  expect(await problems()).toEqual([
    "danger: The file store lacks the files of an object: notes/gone.",
    "advice: The file store has a file without a row.",
  ]);
  await store.remove(hashes);
  await owner.query("delete from storage.objects");
  expect(await problems()).toEqual([]);
});

test("a database without files has no findings of them", async () => {
  const empty = await cloneDatabase("empty");
  try {
    const other = await connect(empty.ownerUrl);
    expect(await readFileFindings(other, makeFolderStore(folder))).toEqual([]);
    await other.end();
  } finally {
    await empty.drop();
  }
});

async function* asChunks(text: string): AsyncIterable<Buffer> {
  yield Buffer.from(text);
}
