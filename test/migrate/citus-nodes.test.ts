import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { DB_FOLDER } from "../../migrate/committed-migrations.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import { rehearseMigrations } from "../../migrate/rehearse.ts";
import { splitStatements } from "../../migrate/split-statements.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { CITUS_NODES } from "../citus-catalog.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const PROPAGATION = "select current_setting('citus.enable_ddl_propagation', true) as value";
const CALLS = "select function, argument, propagates from nodes.calls order by id";

const FUNCTIONS = ["auth.jwt()", "auth.uid()", "auth.role()", "auth.is_admin()"];

/** A coordinator that no migration was applied to. */
async function emptyCoordinator(): Promise<OwnHistories> {
  const own = await ownHistories(["platform"]);
  await own.rows(CITUS_NODES);
  return own;
}

/** A coordinator with the platform's migrations, none of which was sent to a node. */
async function coordinator(): Promise<OwnHistories> {
  const own = await ownHistories(["platform"], { isMigrated: true });
  await own.rows(CITUS_NODES);
  return own;
}

/** The functions that were created on all nodes, in their order. */
async function distributed(own: OwnHistories): Promise<unknown[]> {
  const calls = await own.rows(CALLS);
  return calls.filter((call) => call.function === "create_distributed_function").map(({ argument }) => argument);
}

describe("migrate on a coordinator of Citus", () => {
  test("keeps the definitions of the release on it, and sends those of the project to all nodes", async () => {
    await using own = await emptyCoordinator();
    await own.add("platform", "what it sees", `create table public.release_saw as ${PROPAGATION}`);
    const seen = `${PROPAGATION}, (select count(*)::int from nodes.calls where function = 'create_distributed_function') as functions`;
    await own.add("project", "what it sees", `create table public.project_saw as ${seen}`);
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await own.rows("select value from public.release_saw")).toEqual([{ value: "off" }]);
    const [project] = await own.rows("select coalesce(value, '') as value, functions from public.project_saw");
    expect(project!.value).not.toBe("off");
    // The policies of the project call them.
    expect(project!.functions).toBeGreaterThan(0);
    expect(new Set(await distributed(own))).toEqual(new Set(FUNCTIONS));
    expect(await own.rows("select argument from nodes.calls where propagates = 'off'")).toEqual([]);
  });

  test("creates the functions that policies call on all nodes, the called ones first, and none that reads a table", async () => {
    await using own = await emptyCoordinator();
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await distributed(own)).toEqual(FUNCTIONS);
  });

  test("repeats that without pending migrations, for a node that was added and for functions that were changed", async () => {
    await using own = await coordinator();
    await own.rows(`
      create or replace function auth.is_admin() returns boolean language sql stable return auth.uid() = 1;
      create function nodes.record_definition() returns event_trigger language plpgsql as $$ begin
        insert into nodes.calls (function, argument, propagates)
          select lower(command_tag), object_identity, current_setting('citus.enable_ddl_propagation', true)
          from pg_event_trigger_ddl_commands();
      end $$;
      create event trigger record_definition on ddl_command_end when tag in ('CREATE FUNCTION') execute function nodes.record_definition();`);
    await runMigrations({ name: "migrate" }, own.settings);
    const calls = await own.rows(CALLS);
    const [roles, definitions] = Map.groupBy(calls, (call) => call.function === "run_command_on_workers").values();
    expect(roles!.length).toBeGreaterThan(0);
    expect(definitions!.map(({ function: name, argument }) => [name, argument])).toEqual(
      FUNCTIONS.flatMap((name) => [
        ["create_distributed_function", name],
        // Citus sends the definition, since it takes a second distribution for none.
        ["create function", name],
      ]),
    );
    expect(calls.filter(({ propagates }) => propagates === "off")).toEqual([]);
  });

  test("leaves out a function that reads a table, also through another one", async () => {
    await using own = await coordinator();
    await own.rows(`
      create table public.owners (id bigint);
      create function auth.owns() returns boolean language sql stable return exists (select from public.owners);
      create function auth.may_write() returns boolean language sql stable return auth.owns() or auth.is_admin();
      create function auth.owned_by(owned public.owners) returns boolean language sql stable return owned is not null;
      create function auth.owned_by_all(owned public.owners[]) returns boolean language sql stable return owned is not null;
      create function auth.tenant() returns text language sql stable return auth.jwt() ->> 'tenant';
      grant execute on function auth.may_write, auth.owned_by, auth.owned_by_all, auth.tenant to authenticated;`);
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await distributed(own)).toEqual([...FUNCTIONS, "auth.tenant()"]);
  });

  test("leaves out a function of whose body Postgres does not record what it reads, and its callers", async () => {
    await using own = await coordinator();
    await own.rows(`
      create function auth.quoted() returns boolean language sql stable as 'select true';
      create function auth.block() returns boolean language plpgsql stable as 'begin return true; end';
      create function auth.calls_quoted() returns boolean language sql stable return auth.quoted();
      grant execute on function auth.quoted, auth.block, auth.calls_quoted to authenticated;`);
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await distributed(own)).toEqual(FUNCTIONS);
  });

  test("creates a function that calls one of an extension or an aggregate, but not these", async () => {
    await using own = await coordinator();
    await own.rows(`
      create function public.hashed(value text) returns text language sql immutable as 'select pg_catalog.md5(value)';
      alter extension citus add function public.hashed(text);
      create aggregate public.total(bigint) (sfunc = int8pl, stype = bigint);
      create function auth.hashed_subject() returns text language sql stable return public.hashed(auth.jwt() ->> 'sub');
      create function auth.sum_of(numbers bigint[]) returns bigint language sql immutable
        return (select public.total(number) from pg_catalog.unnest(numbers) as number);
      grant execute on function auth.hashed_subject, auth.sum_of to authenticated;`);
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await distributed(own)).toEqual([...FUNCTIONS, "auth.hashed_subject()", "auth.sum_of(bigint[])"]);
  });

  test("creates the roles of requests on a worker, with login, and changes nothing the second time", async () => {
    await using own = await coordinator();
    await runMigrations({ name: "migrate" }, own.settings);
    const [call] = await own.rows("select argument from nodes.calls where function = 'run_command_on_workers' limit 1");
    // The roles of the tests belong to all their databases, so the command gets other names, and is rolled back.
    const suffix = randomUUID().slice(0, 8);
    const command = String(call!.argument).replaceAll(/"(name|role|member)": "([^"]+)"/g, `"$1": "$2_${suffix}"`);
    const client = new pg.Client(own.settings.url);
    await client.connect();
    const roles = async () =>
      (
        await client.query(
          `select replace(rolname, $1, '') as name, rolcanlogin as logs_in, rolinherit as inherits, rolbypassrls as bypasses
           from pg_roles where rolname like '%' || $1 order by rolname`,
          [`_${suffix}`],
        )
      ).rows;
    try {
      await client.query("begin");
      await client.query(command);
      const created = await roles();
      expect(created).toEqual(
        expect.arrayContaining([
          { name: "anon", logs_in: true, inherits: true, bypasses: false },
          { name: "authenticator", logs_in: true, inherits: false, bypasses: false },
          { name: "service_role", logs_in: true, inherits: true, bypasses: true },
          { name: "supabase_auth_admin", logs_in: false, inherits: true, bypasses: false },
        ]),
      );
      const memberships = `select pg_has_role('authenticator_${suffix}', 'anon_${suffix}', 'member') as is_member`;
      expect((await client.query(memberships)).rows).toEqual([{ is_member: true }]);
      await client.query(`
        alter role anon_${suffix} nologin bypassrls;
        alter role authenticator_${suffix} inherit;
        alter role service_role_${suffix} nobypassrls`);
      await client.query(command);
      expect(await roles()).toEqual(created);
    } finally {
      await client.query("rollback");
      await client.end();
    }
  });

  test("creates no predefined role of Postgres on a worker", async () => {
    await using own = await coordinator();
    const text = await readFile(join(DB_FOLDER, "citus/roles.sql"), "utf8");
    const command = await withClient(own.settings.url, async (client) => {
      // The membership belongs to the cluster, so it is rolled back.
      await client.query("begin; grant pg_monitor to authenticator");
      for (const { sql } of splitStatements(text)) await client.query(sql);
      const { rows } = await client.query("select argument from nodes.calls");
      await client.query("rollback");
      return rows[0].argument;
    });
    expect(command).toContain('"name": "anon"');
    expect(command).toContain('"role": "pg_monitor"');
    expect(command).not.toContain('"name": "pg_');
  });

  test("names the worker that refuses", async () => {
    await using own = await coordinator();
    await own.rows("insert into nodes.refusal values ('permission denied to create role')");
    await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow(
      "could not be created on the node first:5432 of Citus: permission denied to create role",
    );
  });

  test("cannot be rehearsed", async () => {
    await using own = await coordinator();
    const rehearsal = rehearseMigrations(own.settings, { originalUrl: own.settings.url, withRows: false });
    await expect(rehearsal).rejects.toThrow("Migrations cannot be rehearsed on Citus");
  });
});

test("migrate on a worker of Citus is refused, and nothing is changed", async () => {
  await using own = await emptyCoordinator();
  await own.rows("update pg_catalog.pg_dist_local_group set groupid = 3");
  await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow(
    "The database is on a worker of Citus",
  );
  expect(await own.rows("select to_regclass('graphile_migrate.histories') as record")).toEqual([{ record: null }]);
});

test("without Citus, a release's migrations have no setting of it", async () => {
  await using own = await ownHistories(["platform"]);
  await own.add("platform", "what it sees", `create table public.release_saw as ${PROPAGATION}`);
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await own.rows("select coalesce(value, '') as value from public.release_saw")).toEqual([{ value: "" }]);
});
