import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeSchema } from "postgraphile";
import { printSchema } from "postgraphile/graphql";
import { expect, test } from "vitest";
import { openDatabase } from "../../../engine/database/database.ts";
import { makePreset } from "../../../plugins/preset.ts";
import { makeSchemaInTurns } from "../../../plugins/serve/make-schema.ts";
import { makePgService } from "../../../plugins/serve/pg-service.ts";
import { cloneDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";

const ODD = readFileSync(join(import.meta.dirname, "../odd-schema.sql"), "utf8");
const MANY = `
  do $$ begin for n in 1..300 loop
    execute format('create table public.thing_%s (id int primary key, title text)', n);
  end loop; end $$;
  grant select, insert, update, delete on all tables in schema public to authenticated`;

const ENDLESS = new AbortController().signal;

async function withPreset<Result>(
  { template = "empty", sql = "" }: { template?: "content" | "empty"; sql?: string },
  work: (preset: GraphileConfig.Preset) => Promise<Result>,
): Promise<Result> {
  await using opened = new AsyncDisposableStack();
  const database = await cloneDatabase(template);
  opened.defer(() => database.drop());
  const owner = await connect(database.ownerUrl);
  opened.defer(() => owner.end());
  await owner.query(sql);
  const engine = openDatabase({ ...database, log: { info() {}, warn() {} } });
  opened.defer(() => engine.close());
  const pgService = makePgService({ database: engine, schemas: ["public"], loginRole: "authenticator" });
  return await work(makePreset({ pgService, maxPageSize: 1000 }));
}

test.each([
  ["our own", { template: "content" }],
  ["odd", { sql: ODD }],
  ["large", { sql: MANY }],
  ["empty", {}],
] as const)("a database that is %s has the schema that it has in one go", async (_, given) => {
  const [inTurns, atOnce] = await withPreset(given, async (preset) => [
    await makeSchemaInTurns(preset, ENDLESS),
    await makeSchema(preset),
  ]);
  expect(printSchema(inTurns.schema)).toBe(printSchema(atOnce.schema));
});

test("others have their turn between the steps", async () => {
  let turns = 0;
  let next = setImmediate(function take() {
    turns += 1;
    next = setImmediate(take);
  });
  const seen: number[] = [];
  const note = <Value>(value: Value) => {
    seen.push(turns);
    return value;
  };
  const plugin: GraphileConfig.Plugin = { name: "NotePlugin", schema: { hooks: { build: note, finalize: note } } };
  await withPreset({ sql: MANY }, (preset) => makeSchemaInTurns({ extends: [preset], plugins: [plugin] }, ENDLESS));
  clearImmediate(next);
  const [begun, done] = seen;
  expect(done).toBeGreaterThan(begun!);
});

test("what is no longer wanted is not made to its end", async () => {
  const making = withPreset({ sql: MANY }, (preset) => makeSchemaInTurns(preset, AbortSignal.abort(new Error("gone"))));
  await expect(making).rejects.toThrow("gone");
});
