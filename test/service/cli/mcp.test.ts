import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { COMPILE_CACHE, startReady, stopped } from "../../program.ts";
import { NO_PROJECT, REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { WITH_COMPILE_CACHE } from "./run-command.ts";

const SCHEMA = `
  create table public.notes (id int primary key, owner text not null, text text);
  comment on table public.notes is 'What people have written.';
  insert into public.notes values (1, '7', 'mine'), (2, '8', 'theirs');
  alter table public.notes enable row level security;
  create policy own on public.notes for select using (owner = (select auth.jwt()) ->> 'sub');
  grant select on public.notes to authenticated;
  create function public.count_notes(first int default 0) returns bigint stable begin atomic
    select count(*) from public.notes where id >= first; end;
`;

/** The SDK's client of a process with these settings. */
async function openAgent(settings: Record<string, string>): Promise<Client> {
  const agent = new Client({ name: "test", version: "1" });
  const env = { PATH: process.env.PATH!, NODE_COMPILE_CACHE: COMPILE_CACHE, MIGRATIONS_DIR: NO_PROJECT, ...settings };
  const args = [...WITH_COMPILE_CACHE, join(REPOSITORY, "service/cli/mcp.ts")];
  await agent.connect(new StdioClientTransport({ command: process.execPath, args, env, cwd: REPOSITORY }));
  return agent;
}

const database = useDatabase({ sql: SCHEMA });
const client = useFixture(() =>
  openAgent({ DATABASE_URL: database.url, OWNER_DATABASE_URL: database.ownerUrl, JWT_SECRET: SECRET }),
);

async function call(
  name: string,
  args: Record<string, unknown> = {},
  agent = client,
): Promise<{ text: string; isError: boolean }> {
  const { content, isError = false } = await agent.callTool({ name, arguments: args });
  return { text: (content[0] as { text: string }).text, isError };
}

const rows = (query: string) =>
  withClient(database.ownerUrl, async (owner) => (await owner.query({ text: query, rowMode: "array" })).rows);

describe("npm run mcp, with the SDK's client", () => {
  test("has tools that are marked as reading only, except the one that runs SQL", async () => {
    const { tools } = await client.listTools();
    const names = "search_docs read_docs describe_schema why policies doctor migration_status try_migration";
    expect(tools.map(({ name }) => name)).toEqual(names.split(" "));
    const writing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true);
    expect(writing.map(({ name }) => name)).toEqual(["try_migration"]);
  });

  test("finds sections of the documentation, whose pages can be read", async () => {
    const { text } = await call("search_docs", { words: "Idempotency-Key" });
    const page = /^([\w/-]+): /.exec(text)![1]!;
    expect(await call("read_docs", { page })).toMatchObject({
      text: expect.stringContaining("Idempotency-Key"),
      isError: false,
    });
    expect(await call("read_docs", { page: "../package" })).toMatchObject({
      text: expect.stringMatching(/^There is no page.*rest,/),
      isError: true,
    });
  });

  test("lists tables and functions, and describes a table with its policies", async () => {
    const { text } = await call("describe_schema");
    expect(text).toContain(
      "table public.notes (id integer, owner text, text text), row security enabled, 1 policies -- What people have written.",
    );
    expect(text).toContain("function public.count_notes(first integer DEFAULT 0) returns bigint");
    expect(text).not.toContain("content_service.");
    const { policies, primary_key } = JSON.parse((await call("describe_schema", { table: "notes" })).text);
    expect([policies[0].name, primary_key]).toEqual(["own", ["id"]]);
    expect(await call("describe_schema", { table: "none" })).toMatchObject({ isError: true });
  });

  test("explains what a caller sees, and what each role reaches", async () => {
    const caller = { role: "authenticated", claims: '{"sub": "7"}' };
    expect((await call("why", { ...caller, request: "/rest/v1/notes" })).text).toContain(
      "authenticated sees 1 of 2 rows.",
    );
    const refused = await call("why", { request: "/rest/v1/notes" });
    expect(refused).toMatchObject({
      isError: true,
      text: expect.stringContaining('grant select on "public"."notes" to "anon"'),
    });
    const { text } = await call("policies", { roles: ["authenticated"], claims: '{"sub": "7"}' });
    expect(text).toMatch(/notes +select +1 of 2\n +insert +-/);
  });

  test("passes on what doctor and the status of migrations say", async () => {
    expect(await call("doctor")).toMatchObject({ isError: false, text: expect.stringContaining("public.notes") });
    expect(await call("migration_status")).toMatchObject({
      isError: false,
      text: expect.stringContaining("migrations are applied"),
    });
  });

  test("tries a migration and changes nothing, not even if it ends its transaction", async () => {
    const good = await call("try_migration", {
      sql: "alter table public.notes add at date;\nupdate public.notes set at = now();",
    });
    expect(good).toMatchObject({
      isError: false,
      text: expect.stringMatching(/^line 1: ALTER TABLE, .* ms\nline 2: UPDATE 2, .*All statements succeed/s),
    });
    const bad = await call("try_migration", {
      sql: "alter table public.notes add at date;\nalter table public.none add at date;",
    });
    expect(bad).toMatchObject({
      isError: true,
      text: expect.stringContaining('ERROR 42P01: relation "public.none" does not exist'),
    });
    const committed = await call("try_migration", { sql: "delete from public.notes; commit; select 1" });
    expect(committed).toMatchObject({
      isError: true,
      text: expect.stringContaining("Transactions cannot be begun or ended here"),
    });
    expect(await rows("select id, to_jsonb(n) ? 'at' from public.notes n order by id")).toEqual([
      [1, false],
      [2, false],
    ]);
  });

  test("says which argument is missing", async () => {
    expect(await call("why")).toMatchObject({ isError: true, text: expect.stringContaining("request") });
  });

  test("never migrates an embedded database, whatever is called at once", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "content-service-agent-"));
    const service = await startReady({ DATA_DIR: dataDir, BASE_SCHEMA: "platform" });
    await stopped(service, "SIGTERM");
    const agent = await openAgent({ DATA_DIR: dataDir, BASE_SCHEMA: "content" });
    try {
      const calls = [call("describe_schema", {}, agent), call("try_migration", { sql: "select 1" }, agent)];
      const refused = { isError: true, text: expect.stringContaining("does not have the migrations of this version") };
      expect(await Promise.all(calls)).toEqual([refused, refused]);
      const { text } = await call("migration_status", {}, agent);
      expect(text).toContain("migrations are pending");
    } finally {
      await agent.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
