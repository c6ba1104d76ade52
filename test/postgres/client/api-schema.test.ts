import pg from "pg";
import { expect, test } from "vitest";
import {
  hasMovedApiNames,
  makeRoomForApiSchema,
  makesApiSchema,
  moveApiNames,
  moveApiObjects,
  placeApiNames,
} from "../../../postgres/client/api-schema.ts";
import { cloneDatabase } from "../../database.ts";

test.each([
  ["create schema api", true],
  ['CREATE SCHEMA IF NOT EXISTS "api";', true],
  ["do $$ begin execute 'create schema api'; end $$", true],
  ["create schema api_v2", false],
  ["create schema public_api", false],
  ['create schema "Api"', false],
  ["grant usage on schema api to anon", false],
])("%s makes a schema api: %s", (sql, makes) => {
  expect(makesApiSchema(sql)).toBe(makes);
});

test("only names of the service are moved", () => {
  expect(
    moveApiNames("select api.enqueue('api.things') from api.versions, api.versions_of_mine, my.api.versions"),
  ).toBe(
    "select content_service.enqueue('api.things') from content_service.versions, api.versions_of_mine, my.api.versions",
  );
});

test("all that is in schema api moves, and nothing names it afterwards", async () => {
  const database = await cloneDatabase();
  const client = new pg.Client({ connectionString: database.ownerUrl });
  try {
    await client.connect();
    expect(await hasMovedApiNames(client)).toBe(false);
    expect(await placeApiNames(client, "select from api.versions")).toBe("select from api.versions");
    await makeRoomForApiSchema(client, "create schema if not exists other");
    expect(await hasMovedApiNames(client)).toBe(false);
    await client.query("create table api.own ()");
    await moveApiObjects(client);
    await moveApiObjects(client);
    const { rows: left } = await client.query(
      `select relname as name from pg_class where relnamespace = 'api'::regnamespace
        union all select proname from pg_proc where pronamespace = 'api'::regnamespace`,
    );
    expect(left).toEqual([{ name: "own" }]);
    const { rows: naming } = await client.query(
      "select oid::regprocedure from pg_proc where prokind = 'f' and pg_get_functiondef(oid) ~ '(^|[^a-z_.])api[.](?!example)|''api''' and pronamespace <> 'pg_catalog'::regnamespace",
    );
    expect(naming).toEqual([]);
    expect(await placeApiNames(client, "select from api.versions")).toBe("select from content_service.versions");
  } finally {
    await client.end();
    await database.drop();
  }
});
