import type { PgClient } from "@dataplan/pg";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeWithPgClient } from "../../../graphql/operations/pg-client.ts";
import { openDatabase } from "../../../postgres/database/database.ts";
import type { StatementContext } from "../../../postgres/database/statement.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL } from "../../graphql.ts";
import { until } from "../../until.ts";

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const anon: StatementContext = { role: "anon", settings: [["request.jwt.claims", '{"role":"anon"}']] };

const own = useDatabase({ template: "empty" });
const database = useFixture(() => openDatabase({ url: own.url, ownerUrl: own.ownerUrl, log: silent }));
beforeAll(() =>
  database.asOwner((client) =>
    client.query("create table public.things (id integer primary key); grant all on public.things to anon"),
  ),
);
beforeEach(() => database.asOwner(async (client) => void (await client.query("truncate public.things"))));

const withClient = <T>(work: (client: PgClient) => Promise<T>, { readOnly = false } = {}) =>
  makeWithPgClient(database, anon, { readOnly })(null, work);
const insert = (client: PgClient, id: number) =>
  client.query({ text: "insert into public.things values ($1)", values: [id] });
const ids = () =>
  withClient(async (client) =>
    (await client.query<[string]>({ text: "select id from public.things order by id", arrayMode: true })).rows.flat(),
  );

describe("a statement", () => {
  test("runs as the caller, with the caller's settings", async () => {
    const text = "select current_user as role, current_setting('request.jwt.claims') as claims, $1::int + 1 as sum";
    expect(await withClient((client) => client.query({ text, values: [1] }))).toEqual({
      rows: [{ role: "anon", claims: '{"role":"anon"}', sum: "2" }],
      rowCount: 1,
    });
    expect(await withClient((client) => client.query({ text, values: [1], arrayMode: true }))).toMatchObject({
      rows: [["anon", '{"role":"anon"}', "2"]],
    });
  });

  test("returns the number of rows that it changed", async () => {
    const text = "insert into public.things select generate_series(1, 3)";
    expect(await withClient((client) => client.query({ text }))).toMatchObject({ rows: [], rowCount: 3 });
  });

  test("may not write in a read-only operation", async () => {
    await expect(withClient((client) => insert(client, 1), { readOnly: true })).rejects.toMatchObject({
      code: "25006",
    });
  });

  test("runs in a transaction of its own", async () => {
    const work = async (client: PgClient) => {
      await insert(client, 1);
      await insert(client, 1);
    };
    await expect(withClient(work)).rejects.toMatchObject({ code: "23505", table: "things" });
    expect(await ids()).toEqual(["1"]);
  });
});

describe("reads of one turn of the event loop", () => {
  const moment = (client: PgClient, values: string[]) =>
    client.query<[string, string]>({ text: "select now()::text, $1", values, arrayMode: true });
  const moments = (readOnly: boolean) =>
    withClient(
      async (client) => {
        const both = await Promise.all([moment(client, ["one"]), moment(client, ["two"])]);
        expect(both.map(({ rows }) => rows[0]![1])).toEqual(["one", "two"]);
        return new Set(both.map(({ rows }) => rows[0]![0])).size;
      },
      { readOnly },
    );

  test("are read in one batch", async () => {
    await until(async () => (await moments(true)) === 1);
    expect(await moments(false)).toBe(2);
  });
});

describe("a transaction", () => {
  test("is committed as a whole or rolled back", async () => {
    await withClient((client) =>
      client.withTransaction(async (inner) => {
        await insert(inner, 1);
        await insert(inner, 2);
      }),
    );
    const failing = withClient((client) =>
      client.withTransaction(async (inner) => {
        await insert(inner, 3);
        throw new Error("changed my mind");
      }),
    );
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await ids()).toEqual(["1", "2"]);
  });

  test("within another one is rolled back without the outer one", async () => {
    await withClient((client) =>
      client.withTransaction(async (outer) => {
        await insert(outer, 1);
        await outer
          .withTransaction(async (inner) => {
            await insert(inner, 2);
            await inner.withTransaction((innermost) => insert(innermost, 3));
            await insert(inner, 1);
          })
          .catch(() => {});
        await outer.withTransaction((inner) => insert(inner, 4));
      }),
    );
    expect(await ids()).toEqual(["1", "4"]);
  });
});

test("a catalogue that is larger than the response limit is read all the same", async () => {
  const { ask, stop } = await serveGraphQL({ settings: { MAX_ANSWER_BYTES: "65536" } });
  try {
    expect(await ask("{ articles(first: 1) { totalCount } }")).toMatchObject({ data: { articles: { totalCount: 0 } } });
  } finally {
    await stop();
  }
});
