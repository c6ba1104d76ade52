import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkArchive } from "../../../engine/archive/restore-archive.ts";
import { writeArchive } from "../../../engine/archive/write-archive.ts";
import { withClient } from "../../../engine/pg-client/with-client.ts";
import { cloneDatabase, urlOf } from "../../database.ts";
import { propertyRuns } from "../../property-runs.ts";
import { aliasesOfEngine, randomSchema, type WrittenTable, writeSchema } from "./random-schema.ts";

const RUNS = 500;
const settingsFor = (url: string) => ({ url, shadowUrl: "", rootUrl: urlOf("postgres", "postgres"), histories: [] });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "random-schemas-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("tables and columns of any types, named as the aliases in the engine's SQL, are restored with all rows", async () => {
  const names = aliasesOfEngine();
  expect(names).toEqual(expect.arrayContaining(["t", "row", "rows", "item", "statement"]));
  const property = fc.asyncProperty(randomSchema(names), async (schema) => {
    const { statements, tables } = writeSchema(schema);
    await using stack = new AsyncDisposableStack();
    const [source, target] = [await cloneDatabase("empty"), await cloneDatabase("empty")];
    stack.defer(() => source.drop());
    stack.defer(() => target.drop());
    const file = join(folder, `${source.name}.gz`);
    stack.defer(() => rm(file, { force: true }));
    await withClient(source.ownerUrl, async (client) => {
      for (const statement of statements) await client.query(statement);
    });
    await writeArchive(source.ownerUrl, file);
    expect((await checkArchive(file, settingsFor(target.ownerUrl))).warnings).toEqual([]);
    const rowsOf = (url: string) => withClient(url, (client) => readRows(client, tables));
    expect(await rowsOf(target.ownerUrl)).toEqual(await rowsOf(source.ownerUrl));
    const [original, copy] = [await pgDump(source.ownerUrl), await pgDump(target.ownerUrl)];
    expect(copy).toEqual(original);
  });
  // Two databases a run: a fifth of a fifth in a usual run.
  await fc.assert(property, { numRuns: Math.ceil(propertyRuns(RUNS) ** 2 / RUNS) });
});

/** By names of columns, unlike a backup. */
async function readRows(client: pg.ClientBase, tables: readonly WrittenTable[]): Promise<unknown> {
  const read: unknown[] = [];
  for (const { name, columns } of tables) {
    const values = columns.map((column) => `${column}::pg_catalog.text`);
    const query = { text: `select ${values.join(", ")} from only ${name} order by "id of row"`, rowMode: "array" };
    read.push([name, (await client.query(query)).rows]);
  }
  return read;
}

const PG_DUMP = join(process.env.TEST_POSTGRES ?? "", "pg_dump");
const hasPgDump = process.env.TEST_POSTGRES !== undefined && existsSync(PG_DUMP);

/** The lines, without the order of columns, which a table that inherits has from its parent first. Null where there is no pg_dump. */
async function pgDump(url: string): Promise<string[] | null> {
  if (!hasPgDump) return null;
  const words = ["--inserts", "--column-inserts", "--rows-per-insert=1", url];
  const { stdout } = await promisify(execFile)(PG_DUMP, words, { maxBuffer: 1e8 });
  return stdout
    .split("\n")
    .filter((line) => !/^\\(un)?restrict /.test(line))
    .map((line) =>
      line.startsWith("INSERT ")
        ? line
            .split(/[ (),]+/)
            .sort()
            .join(" ")
        : line.replace(/,$/, ""),
    )
    .sort();
}
