import pg from "pg";
import { describe, expect, test } from "vitest";
import { Client, Pool, PostgresError } from "../../../../../rest-gateway/functions/thread/deno-modules/postgres.ts";
import { useDatabase } from "../../../../database.ts";
import { useFixture } from "../../../../fixture.ts";

const database = useDatabase({
  template: "platform",
  sql: "create table public.animals (id bigint primary key, the_name text unique)",
});

describe("a pool", () => {
  const pool = useFixture(
    () => new Pool(database.ownerUrl, 2, true),
    (opened) => opened.end(),
  );

  test("runs templates, texts with arguments, and options, and returns objects or arrays", async () => {
    const connection = await pool.connect();
    const insert = await connection.queryObject`insert into animals values (${1n}, ${"cat"}), (2, 'dog')`;
    expect([insert.command, insert.rowCount, insert.rows]).toEqual(["INSERT", 2, []]);
    const expected = [{ id: 2n, the_name: "dog" }];
    expect((await connection.queryObject("select * from animals where id = $1", [2])).rows).toEqual(expected);
    expect((await connection.queryObject("select * from animals where id = $ID", { id: 2 })).rows).toEqual(expected);
    const text = "select id, the_name from animals where the_name = $name and $name <> $other";
    const args = { name: "cat", other: "dog" };
    expect((await connection.queryObject({ text, args, camelCase: true })).rows).toEqual([{ id: 1n, theName: "cat" }]);
    expect((await connection.queryObject({ text, args, fields: ["a", "b"] })).rows).toEqual([{ a: 1n, b: "cat" }]);
    expect((await connection.queryArray`select id from animals order by id`).rows).toEqual([[1n], [2n]]);
    connection.release();
    expect(await pool.connect()).toBe(connection);
    connection.release();
    expect([pool.available, pool.size]).toEqual([1, 2]);
  });

  test("returns types as the driver of Deno does", async () => {
    using connection = await pool.connect();
    const { rows } = await connection.queryArray(`select 1::bigint, 2::int, '1.10'::numeric, '\\x00ff'::bytea,
      '{"a": 1}'::jsonb, timestamptz '2020-01-01 00:00Z', interval '1 day', array[true, false], null`);
    expect(rows).toEqual([
      [1n, 2, "1.10", new Uint8Array([0, 255]), { a: 1 }, new Date("2020-01-01"), "1 day", [true, false], null],
    ]);
    const bytes = new Uint8Array([9, 1, 2, 9]).subarray(1, 3);
    expect((await connection.queryArray`select ${bytes}::bytea, ${["x", "y"]}::text[]`).rows).toEqual([
      [new Uint8Array([1, 2]), ["x", "y"]],
    ]);
  });

  test("refuses several columns of a name, and reports errors of Postgres with their code", async () => {
    using connection = await pool.connect();
    await expect(connection.queryObject("select 1 as a, 2 as a")).rejects.toThrow("the same name");
    const error = await connection.queryObject`insert into animals values (5, 'x'), (5, 'y')`.catch((e) => e);
    expect(error).toBeInstanceOf(PostgresError);
    expect((error as PostgresError).fields).toMatchObject({ code: "23505", table: "animals" });
  });

  test("has transactions, which end at commit, rollback or an error", async () => {
    using connection = await pool.connect();
    const count = async () => (await connection.queryArray`select count(*)::int from animals where id >= 10`).rows[0];
    const begin = async (name: string) => {
      const transaction = connection.createTransaction(name, { isolation_level: "repeatable_read" });
      await transaction.begin();
      await transaction.queryArray`insert into animals values (10, 'ten')`;
      return transaction;
    };
    await (await begin("rolled back")).rollback();
    expect(await count()).toEqual([0]);
    const failed = await begin("failed");
    await expect(failed.queryArray`select 1 / 0`).rejects.toThrow("division by zero");
    expect(await count()).toEqual([0]);
    await (await begin("committed")).commit();
    expect(await count()).toEqual([1]);
  });
});

test("a client connects by options", async () => {
  const { host, port, user, password, database: name } = new pg.Client(database.ownerUrl);
  const client = new Client({
    hostname: host,
    port,
    database: name!,
    applicationName: "edge",
    ...(user !== undefined && { user }),
    ...(password && { password }),
  });
  await client.connect();
  expect((await client.queryArray("select current_setting('application_name')")).rows).toEqual([["edge"]]);
  await client.end();
});

test.each([
  [{}, true],
  [{ enforce: false }, true],
  [{ enforce: true }, false],
  [{ caCertificates: ["a certificate"] }, false],
  [{ caCertificates: ["a certificate"], enabled: false }, true],
])("a client with the options of TLS %j connects to a server without TLS: %s", async (tls, connects) => {
  const { host, port, user, database: name } = new pg.Client(database.ownerUrl);
  const client = new Client({ hostname: host, port, database: name!, user: user!, tls });
  const outcome = await client.connect().then(
    () => true,
    (error: Error) => {
      if (/does not support SSL/.test(error.message)) return false;
      throw error;
    },
  );
  expect(outcome).toBe(connects);
  if (outcome) await client.end();
});
