import pg from "pg";
import { describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../postgres/database/database.ts";
import { makeTopicAuthorization, type TopicAuthorization } from "../../realtime/authorization.ts";
import { cloneDatabase } from "../database.ts";

const POLICIES = `
  create policy hear on realtime.messages for select to anon using (realtime.topic() = 'room');
  create policy speak on realtime.messages for insert to anon with check (realtime.topic() = 'room')`;

const ROOM = { name: "room", isPrivate: true };

test("a read-only role receives and sends where policies allow it", async () => {
  const { url, ownerUrl, drop } = await cloneDatabase();
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  await owner.query(POLICIES);
  const log = { info: () => {}, warn: () => {} };
  const database: Database = openDatabase({ url, ownerUrl, log });
  try {
    const settings = [["transaction_read_only", "on"]] as const;
    const { readAccess: mayHear, mayWrite: maySay } = makeTopicAuthorization({
      database,
      contextOf: () => ({ role: "anon", settings }),
    });
    const caller = { role: "anon", claims: {} } as Parameters<typeof mayHear>[0];
    expect(await mayHear(caller, "room")).toEqual({ broadcast: true, presence: true });
    expect(await maySay(caller, ROOM, "broadcast")).toBe(true);
    expect(await mayHear(caller, "elsewhere")).toEqual({ broadcast: false, presence: false });
    expect(await maySay(caller, { name: "elsewhere", isPrivate: true }, "broadcast")).toBe(false);
    expect(await maySay(caller, { name: "elsewhere", isPrivate: false }, "broadcast")).toBe(true);
    const reader = { ...caller, claims: { oauth_grant_id: "grant", client_id: "app", scope: "read" } };
    expect(await mayHear(reader, "room")).toEqual({ broadcast: true, presence: true });
    for (const isPrivate of [true, false])
      expect(await maySay(reader, { name: "room", isPrivate }, "presence")).toBe(false);
  } finally {
    await database.close();
    await owner.end();
    await drop();
  }
});

/** Each set of policies, with its name. */
const POLICY_SETS: Readonly<Record<string, string>> = {
  "no policy": "select",
  "a policy for one extension": `create policy a on realtime.messages for select using (extension = 'broadcast');
    create policy b on realtime.messages for insert with check (extension = 'presence')`,
  "several permissive policies": `create policy a on realtime.messages for select to anon using (extension = 'broadcast');
    create policy b on realtime.messages for select to authenticated using (messages.extension = 'presence');
    create policy c on realtime.messages for select to admin using (topic like 'r%' and private)`,
  "a restrictive policy": `create policy a on realtime.messages using (true);
    create policy b on realtime.messages as restrictive for all to authenticated using (extension <> 'presence')`,
  "only a restrictive policy": "create policy a on realtime.messages as restrictive using (true) with check (true)",
  "a policy for all commands": `create policy a on realtime.messages to authenticated using (topic = 'room') with check (extension = 'broadcast')`,
  "a policy without a condition": `create policy a on realtime.messages for select; create policy b on realtime.messages for insert`,
  "a restrictive policy without a condition": `create policy a on realtime.messages using (true);
    create policy b on realtime.messages as restrictive for select; create policy c on realtime.messages as restrictive for insert`,
  "a condition that is null": "create policy a on realtime.messages using (null::boolean)",
  "a condition that fails": "create policy a on realtime.messages using (1 / length(left(topic, 0)) = 0)",
  "a subquery on a table that is not granted": `create table public.hidden as select 'room' as topic;
    create policy a on realtime.messages using (exists (select from public.hidden h where h.topic = messages.topic))`,
  "a subquery on a table with its own policies": `create table public.members as select 'room' as topic, 'authenticated'::name as member;
    alter table public.members enable row level security; grant select on public.members to anon, authenticated;
    create policy own on public.members using (member = current_user);
    create policy a on realtime.messages using (topic in (select m.topic from public.members m))`,
  "names in a schema of the search path": `create function public.topic(text) returns text return upper($1);
    create policy a on realtime.messages using (topic(messages.topic) = 'ROOM' and "extension" = any (array['broadcast']))`,
  "a revoked privilege": `create policy a on realtime.messages using (true);
    revoke select on realtime.messages from anon; revoke insert on realtime.messages from authenticated`,
  "a revoked schema": "create policy a on realtime.messages using (true); revoke usage on schema realtime from anon",
  "no row-level security": "alter table realtime.messages disable row level security",
};

describe("permissions of a topic are those that Postgres gives for a written message", () => {
  test.for(Object.entries(POLICY_SETS))("with %s", async ([, policies]) => {
    const { url, ownerUrl, drop } = await cloneDatabase();
    const owner = new pg.Client({ connectionString: ownerUrl });
    await owner.connect();
    await owner.query(
      `drop policy select_nobody on realtime.messages; drop policy insert_nobody on realtime.messages; ${policies}`,
    );
    const database: Database = openDatabase({ url, ownerUrl, log: { info: () => {}, warn: () => {} } });
    const authorization = makeTopicAuthorization({ database, contextOf: ({ role }) => ({ role, settings: [] }) });
    try {
      for (const role of ["anon", "authenticated", "admin", "service_role"]) {
        expect([role, await readPermissions(authorization, role)]).toEqual([role, await tryMessages(owner, role)]);
      }
    } finally {
      await database.close();
      await owner.end();
      await drop();
    }
  });
});

async function readPermissions({ readAccess, mayWrite }: TopicAuthorization, role: string) {
  const caller = { role, claims: {} } as Parameters<typeof readAccess>[0];
  const write = {
    broadcast: await mayWrite(caller, ROOM, "broadcast"),
    presence: await mayWrite(caller, ROOM, "presence"),
  };
  return { read: await readAccess(caller, "room"), write };
}

/** Inserts messages as the owner and reads them as the role, and inserts them as the role; all is rolled back. */
async function tryMessages(owner: pg.Client, role: string) {
  const attempt = async (extension: string, statement: string) => {
    await owner.query("begin");
    try {
      await owner.query("insert into realtime.messages (topic, extension, private) values ('room', $1, true)", [
        extension,
      ]);
      await owner.query("select set_config('role', $1, true), set_config('realtime.topic', 'room', true)", [role]);
      return (await owner.query(statement, [extension])).rowCount === 1;
    } catch {
      return false;
    } finally {
      await owner.query("rollback");
    }
  };
  const read = (extension: string) =>
    attempt(extension, "select topic, extension from realtime.messages where extension = $1");
  const write = (extension: string) =>
    attempt(extension, "insert into realtime.messages (topic, extension, private) values ('room', $1, true)");
  return {
    read: { broadcast: await read("broadcast"), presence: await read("presence") },
    write: { broadcast: await write("broadcast"), presence: await write("presence") },
  };
}
