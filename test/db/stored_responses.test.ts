import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { connect } from "./callers.ts";

let owner: pg.Client;
let first: pg.Client;
let second: pg.Client;

const database = useDatabase();
beforeAll(async () => {
  owner = await connect(database.ownerUrl);
  first = await connect(database.url);
  second = await connect(database.url);
});
beforeEach(() =>
  owner.query("delete from content_service.kept_answers; delete from content_service.kept_answer_counts"),
);
afterAll(async () => {
  for (const client of [owner, first, second]) await client.end();
});

const newPlace = () => randomBytes(32).toString("hex");
const base64 = (text: string) => Buffer.from(text).toString("base64");

async function claim(client: pg.Client, place: string): Promise<{ is_claimed: boolean; answer: string | null }> {
  const { rows } = await client.query("select * from content_service.claim_response($1)", [place]);
  return rows[0];
}

async function keep(client: pg.Client, place: string, answer = "said"): Promise<void> {
  await client.query("select content_service.store_response($1, $2, 60)", [place, base64(answer)]);
}

const FREE = { is_claimed: true, answer: null };
const TAKEN = { is_claimed: false, answer: null };
const expire = () => owner.query("update content_service.kept_answers set expires_at = now()");
const keptPlaces = async () =>
  (await owner.query("select encode(id, 'hex') as id from content_service.kept_answers")).rows.map(({ id }) => id);

describe("a stored response", () => {
  test("locks its key for one transaction, and is then available", async () => {
    const place = newPlace();
    await first.query("begin");
    expect(await claim(first, place)).toEqual(FREE);
    expect(await claim(second, place)).toEqual(TAKEN);
    await keep(first, place);
    expect(await claim(second, place)).toEqual(TAKEN);
    await first.query("commit");
    expect(await claim(second, place)).toEqual({ is_claimed: false, answer: base64("said") });
  });

  test("is discarded with its lock when the transaction is rolled back", async () => {
    const place = newPlace();
    await first.query("begin");
    await claim(first, place);
    await keep(first, place);
    await first.query("rollback");
    expect(await claim(second, place)).toEqual(FREE);
    expect(await keptPlaces()).toEqual([]);
  });

  test("is returned to any number of concurrent transactions", async () => {
    const place = newPlace();
    await keep(owner, place);
    for (const client of [first, second]) {
      await client.query("begin");
      expect((await claim(client, place)).answer).toBe(base64("said"));
    }
    for (const client of [first, second]) await client.query("rollback");
  });

  test("does not block other keys", async () => {
    await first.query("begin");
    await claim(first, newPlace());
    expect(await claim(second, newPlace())).toEqual(FREE);
    await first.query("rollback");
  });

  test("never has a second response, not even from a transaction that cannot see the first", async () => {
    const place = newPlace();
    await second.query("begin isolation level repeatable read");
    await second.query("select now()");
    await keep(first, place, "first");
    expect(await claim(second, place)).toEqual(FREE);
    await expect(keep(second, place, "second")).rejects.toMatchObject({ code: "23505" });
    await second.query("rollback");
    expect((await claim(first, place)).answer).toBe(base64("first"));
  });
});

describe("an expired response", () => {
  test("is ignored, and replaced by the next", async () => {
    const place = newPlace();
    await keep(first, place, "old");
    await expire();
    expect(await claim(first, place)).toEqual(FREE);
    await keep(first, place, "new");
    expect((await claim(first, place)).answer).toBe(base64("new"));
  });

  test("is deleted by later writes, a few at a time", async () => {
    await owner.query(`
      insert into content_service.kept_answers (id, sealed_answer, expires_at)
      select sha256(n::text::bytea), '', now() - interval '1 hour' from generate_series(1, 25) n`);
    const places = [newPlace(), newPlace(), newPlace()];
    await keep(first, places[0]!);
    expect(await keptPlaces()).toHaveLength(1 + 15);
    await keep(first, places[1]!);
    await keep(first, places[2]!);
    expect((await keptPlaces()).sort()).toEqual(places.sort());
  });

  test("that another transaction is deleting blocks no caller", async () => {
    await keep(first, newPlace(), "old");
    await expire();
    await first.query("begin");
    await keep(first, newPlace());
    await keep(second, newPlace());
    await first.query("commit");
    expect(await keptPlaces()).toHaveLength(2);
  });
});

describe("the responses of a caller with many keys", () => {
  const CALLER = "user 4711";
  const counted = async () =>
    (
      await owner.query("select keys::int, bytes::int, uncounted::int from content_service.responses_of_caller($1)", [
        CALLER,
      ])
    ).rows[0];
  const store = (client: pg.Client) =>
    client.query("select content_service.store_response($1, $2, 60, $3, 'authenticated')", [
      newPlace(),
      base64("said"),
      CALLER,
    ]);
  const addMany = (count: number) =>
    owner.query(
      `insert into content_service.kept_answers (id, sealed_answer, expires_at, caller_key, bytes)
        select sha256(n::text::bytea), 'said', now() + interval '1 hour', $1, 4 from generate_series(1, $2::int) n`,
      [CALLER, count],
    );
  const setBound = (bound: number) =>
    owner.query("update content_service.bounds set bound = $1 where name = 'idempotency keys of a caller'", [bound]);

  test("are not counted again by each request", async () => {
    await addMany(5_000);
    await store(first);
    expect(await counted()).toEqual({ keys: 5_001, bytes: 20_004, uncounted: 0 });
    for (const client of [first, second, first]) await store(client);
    expect(await counted()).toEqual({ keys: 5_004, bytes: 20_016, uncounted: 3 });
  });

  test("have the bound of all others, and room again when they have expired", async () => {
    await addMany(300);
    await store(first);
    await setBound(302);
    const ask = () =>
      first.query("select content_service.claim_response($1, $2, 'authenticated')", [newPlace(), CALLER]);
    await ask();
    await store(first);
    await expect(ask()).rejects.toMatchObject({ code: "TOMNY" });
    await expire();
    await owner.query("update content_service.kept_answer_counts set counted_at = '-infinity'");
    await owner.query("select content_service.maintain_responses()");
    await ask();
    await setBound(50_000);
    expect((await owner.query("select from content_service.kept_answer_counts")).rowCount).toBe(0);
  });

  test("are counted by one of several transactions, for which the others do not wait", async () => {
    await addMany(300);
    for (const client of [first, second]) await client.query("begin");
    for (const client of [first, second]) await store(client);
    for (const client of [second, first]) await client.query("commit");
    expect(await counted()).toMatchObject({ keys: 302 });
  });

  test("are counted in transactions with a snapshot, too", async () => {
    await addMany(300);
    for (const client of [first, second]) {
      await client.query("begin isolation level repeatable read");
      await client.query("select now()");
    }
    for (const client of [first, second]) {
      await store(client);
      await client.query("commit");
    }
    expect(await counted()).toMatchObject({ keys: 302 });
  });
});

describe("the content of a stored response", () => {
  test.each(["anon", "authenticated", "admin", "service_role"])("is inaccessible for %s", async (role) => {
    const place = newPlace();
    await keep(first, place);
    for (const statement of [
      "select from content_service.kept_answers",
      `select content_service.claim_response('${place}')`,
      `select content_service.store_response('${newPlace()}', '', 60)`,
    ]) {
      await first.query("begin");
      await first.query(`set local role ${role}`);
      await expect(first.query(statement), statement).rejects.toMatchObject({ code: "42501" });
      await first.query("rollback");
    }
  });

  test.each(["select from", "delete from", "truncate"])(
    "is accessible for the login by the two functions only, and not by: %s",
    async (verb) => {
      await expect(first.query(`${verb} content_service.kept_answers`)).rejects.toMatchObject({ code: "42501" });
    },
  );
});
