import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { readDatabaseSettings } from "../../catalog/config-keeper.ts";
import { ConfigError } from "../../config/config.ts";
import { urlOf, useClient, useDatabase } from "../database.ts";

/** Settings of a role hold in the whole cluster: a login of one's own disturbs nobody. */
const login = `Login ${randomUUID().slice(0, 8)}`;
let url: string;

const database = useDatabase({ template: "empty", sql: `create role "${login}" login noinherit` });
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  url = urlOf(encodeURIComponent(login), database.name);
});
afterEach(() =>
  owner.query(`alter role "${login}" reset all; alter role "${login}" in database ${database.name} reset all`),
);
afterAll(async () => {
  await owner.query(`drop owned by "${login}"; drop role "${login}"`);
});

const read = async (preConfig: string | null = null) => Object.fromEntries(await readDatabaseSettings(url, preConfig));

describe("settings of the login role", () => {
  test("are those with the prefix pgrst", async () => {
    expect(await read()).toEqual({});
    await owner.query(
      `alter role "${login}" set pgrst.db_schemas = 'api, "odd one"'; alter role "${login}" set work_mem = '8MB'`,
    );
    expect(await read()).toEqual({ "pgrst.db_schemas": 'api, "odd one"' });
  });

  test("for this database take precedence over those for all, and those for another one are ignored", async () => {
    await owner.query(`
      alter role "${login}" set pgrst.db_max_rows = '1';
      alter role "${login}" set pgrst.jwt_aud = 'everywhere';
      alter role "${login}" in database ${database.name} set pgrst.db_max_rows = '2';
      alter role "${login}" in database postgres set pgrst.db_tx_end = 'rollback'`);
    expect(await read()).toEqual({ "pgrst.db_max_rows": "2", "pgrst.jwt_aud": "everywhere" });
    await owner.query(`alter role "${login}" in database postgres reset all`);
  });

  test("settings of the database itself are ignored, as in PostgREST", async () => {
    await owner.query(`alter database ${database.name} set pgrst.jwt_aud = 'database'`);
    expect(await read()).toEqual({});
    await owner.query(`alter database ${database.name} reset all`);
  });
});

describe("the function of PGRST_DB_PRE_CONFIG", () => {
  beforeAll(() =>
    owner.query(`
      create schema "Set up";
      grant usage on schema "Set up" to "${login}";
      create function "Set up".pre_config() returns void language sql as $$
        select set_config('pgrst.db_schemas', 'of_function', true), set_config('pgrst.db_max_rows', '7', true),
          set_config('pgrst.nobody_knows', 'x', true), set_config('pgrst.jwt_aud', current_user, false)
      $$;
      create function "Set up".broken() returns void language plpgsql as $$ begin raise 'not today'; end $$;
      create function "Set up".writes() returns void language sql as 'create table public.t ()';`),
  );

  test("is called by the login role, and its settings count", async () => {
    expect(await read("Set up.pre_config")).toEqual({
      "pgrst.db_schemas": "of_function",
      "pgrst.db_max_rows": "7",
      "pgrst.jwt_aud": login,
    });
  });

  test("settings of the login role take precedence over it, and may name it", async () => {
    await owner.query(`alter role "${login}" set pgrst.db_max_rows = '1'`);
    expect(await read("Set up.pre_config")).toMatchObject({ "pgrst.db_max_rows": "1", "pgrst.jwt_aud": login });
    await owner.query(`alter role "${login}" set pgrst.db_pre_config = 'Set up.pre_config'`);
    expect(await read()).toMatchObject({ "pgrst.db_max_rows": "1", "pgrst.jwt_aud": login });
  });

  test.each([
    ["Set up.nothing", /Set up\.nothing.* does not exist/],
    ["Set up.broken", /The function Set up\.broken \(PGRST_DB_PRE_CONFIG\) failed: not today/],
    ["Set up.writes", /read-only transaction/],
  ])("%s fails with a message", async (name, words) => {
    const reading = read(name);
    await expect(reading).rejects.toBeInstanceOf(ConfigError);
    await expect(reading).rejects.toThrow(words);
  });
});
