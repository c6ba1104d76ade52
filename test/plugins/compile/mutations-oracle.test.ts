import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { connect, SEED } from "../../db/callers.ts";
import { tokenFor } from "../../graphql.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { compareMutations, operationWays } from "./oracle.ts";

type World = { readonly database: TestDatabase; readonly owner: pg.Client; readonly service: Service };

let compiling: World;
let plain: World;
beforeAll(async () => {
  compiling = await open("on");
  plain = await open("off");
});
afterAll(async () => {
  for (const world of [compiling, plain]) {
    await world?.service.stop();
    await world?.owner.end();
    await world?.database.drop();
  }
});

async function open(compile: "on" | "off"): Promise<World> {
  const database = await cloneDatabase("content");
  const owner = await connect(database.ownerUrl);
  await owner.query(SEED);
  const service = await serve(database, { ADMIN_PORT: "0", GRAPHQL_COMPILE: compile });
  return { database, owner, service };
}

let next = 1_000;

/** What fails takes a number of a sequence too, and once more when Grafast repeats it. */
async function alignSequences(): Promise<void> {
  next += 10;
  const sequences =
    "select setval(format('%I.%I', schemaname, sequencename), $1) from pg_sequences where schemaname = 'public'";
  for (const { owner } of [compiling, plain]) await owner.query(sequences, [next]);
}

describe("mutations have the same answers and effects, compiled and not", () => {
  test.each([
    ["anon", null],
    ["a user", tokenFor(1)],
    ["admin", tokenFor(3, { role: "admin" })],
  ])("as %s", async (_role, token) => {
    const services = { compiling: compiling.service, plain: plain.service };
    await compareMutations(services, token, propertyRuns(700), alignSequences);
    const state = `select (select json_agg(a.* order by id) from (select id, title, content, status, tags, author_id from articles) a) as articles,
      (select json_agg(c.* order by id) from (select id, content, author_id, article_id from comments) c) as comments,
      (select json_agg(u.* order by id) from (select id, name, email, age from users) u) as users`;
    expect((await compiling.owner.query(state)).rows).toEqual((await plain.owner.query(state)).rows);
  });

  test("and those of functions are compiled", async () => {
    expect((await operationWays(compiling.service)).compiled).toBeGreaterThan(0);
  });
});
