import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseLsn } from "../../../postgres/database/lsn.ts";
import { parseResumeToken } from "../../../realtime/changes/subscriber.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { RawClient } from "../raw-client.ts";
import { openRealtimeFixture, token } from "../service.ts";

const SCHEMA = `
  create table public.things (id int primary key, owner text, rank int, open boolean, word text);
  alter table public.things enable row level security;
  alter table public.things alter word set storage external;
  grant select (id, owner, rank, open) on public.things to anon;
  grant select on public.things to authenticated, service_role;
  create table public.ends (run text primary key);
  grant select on public.ends to anon, authenticated, service_role`;

const PERMISSIVE = [
  "owner = (select auth.jwt() ->> 'sub')",
  "open",
  "rank < ((select auth.jwt()) -> 'level')::int",
  "things.word is not null and rank > 2",
  "true",
  "exists (select from unnest(string_to_array(things.word, ' ')) as part where part = (select auth.jwt() ->> 'sub'))",
];
const RESTRICTIVE = ["rank is distinct from 3", "owner <> 'carol' or (select auth.role()) = 'anon'", "true"];

const RUNS = propertyRuns(12);
const SUBSCRIBERS = [
  { role: "anon", level: 0 },
  { role: "authenticated", sub: "alice", level: 3 },
  { role: "authenticated", sub: "bob", level: 1 },
  { role: "service_role", level: 0 },
];

const id = fc.integer({ min: 1, max: 6 });
const literal = (values: readonly string[]) => fc.constantFrom(...values);
const owner = literal(["'alice'", "'bob'", "'carol'", "null"]);
const rank = literal(["0", "1", "2", "3", "4", "null"]);
const open = literal(["true", "false", "null"]);
/** The last is stored out of line, and is not in the log when an update leaves it unchanged. */
const word = literal(["'alice bob'", "'bob'", "null", "repeat('alice ', 1000)"]);
const assignment = fc.oneof(
  owner.map((value) => `owner = ${value}`),
  rank.map((value) => `rank = ${value}`),
  open.map((value) => `open = ${value}`),
  word.map((value) => `word = ${value}`),
);
const statement = fc.oneof(
  fc.tuple(id, owner, rank, open, word).map((row) => `insert into things values (${row}) on conflict do nothing`),
  fc.tuple(id, assignment).map(([key, set]) => `update things set ${set} where id = ${key}`),
  assignment.map((set) => `update things set ${set}`),
  fc
    .tuple(id, id)
    .map(
      ([from, to]) =>
        `update things set id = ${to} where id = ${from} and not exists (select from things where id = ${to})`,
    ),
  id.map((key) => `delete from things where id = ${key}`),
  fc.constant("delete from things where rank > 2"),
);
const transaction = fc.record({
  statements: fc.array(statement, { minLength: 1, maxLength: 4 }),
  commits: fc.boolean(),
});
const policies = fc.record({
  permissive: fc.subarray(PERMISSIVE, { minLength: 1, maxLength: 2 }),
  restrictive: fc.subarray(RESTRICTIVE, { maxLength: 1 }),
  roles: fc.constantFrom("public", "authenticated"),
});

const clients: RawClient[] = [];

const fixture = useFixture(() => openRealtimeFixture(SCHEMA));
beforeAll(async () => {
  for (const claims of SUBSCRIBERS)
    clients.push(await new RawClient(fixture.service.url, { key: token(claims) }).opened());
});
afterAll(() => Promise.all(clients.map((client) => client.close())));

const run = (text: string, values?: unknown[]) => fixture.owner.query(text, values);

/** The result of each subscriber's SELECT. */
async function selectAll(): Promise<string[]> {
  const states: string[] = [];
  for (const claims of SUBSCRIBERS) {
    await run("begin");
    await run("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
      claims.role,
      JSON.stringify(claims),
    ]);
    const columns = claims.role === "anon" ? "id, owner, rank, open" : "*";
    const { rows } = await run(`select ${columns} from things order by id`);
    await run("rollback");
    states.push(JSON.stringify(rows));
  }
  return states;
}

function stateOf(rows: ReadonlyMap<number, object>): string {
  return JSON.stringify([...rows.entries()].sort(([one], [other]) => one - other).map(([, row]) => row));
}

test("the changes that a subscriber is sent add up to the result of its SELECT after each transaction", async () => {
  await fc.assert(
    fc.asyncProperty(
      policies,
      fc.array(transaction, { minLength: 3, maxLength: 8 }),
      async ({ permissive, restrictive, roles }, history) => {
        const name = crypto.randomUUID();
        await run("delete from things");
        const { rows: old } = await run("select polname from pg_policy where polrelid = 'things'::regclass");
        for (const { polname } of old) await run(`drop policy "${polname}" on things`);
        for (const [at, using] of permissive.entries())
          await run(`create policy p${at} on things for select to ${roles} using (${using})`);
        for (const [at, using] of restrictive.entries())
          await run(`create policy r${at} on things as restrictive using (${using})`);
        const bindings = ["things", "ends"].map((table) => ({ event: "*", schema: "public", table }));
        await Promise.all(clients.map((client) => client.join(`realtime:${name}`, { postgres_changes: bindings })));

        const expected: { readonly until: bigint; readonly states: readonly string[] }[] = [];
        for (const { statements, commits } of history) {
          await run("begin");
          for (const each of statements) await run(each);
          await run(commits ? "commit" : "rollback");
          const { rows } = await run("select pg_current_wal_insert_lsn()::text as lsn");
          expected.push({ until: parseLsn(rows[0].lsn)!, states: await selectAll() });
        }
        await run("insert into ends values ($1)", [name]);

        for (const [number, client] of clients.entries()) {
          await client.until(({ payload }) => payload.data?.table === "ends" && payload.data.record.run === name);
          const result = client.items.filter(
            ({ topic, payload }) => topic === `realtime:${name}` && payload.data?.table === "things",
          );
          const rows = new Map<number, object>();
          let next = 0;
          for (const { until, states } of expected) {
            for (; next < result.length; next++) {
              const { type, record, old_record: before, position } = result[next]!.payload.data;
              if (parseResumeToken(position)!.position.commitLsn > until) break;
              if (before?.id !== undefined) rows.delete(before.id);
              if (type !== "DELETE") rows.set(record.id, record);
            }
            expect(stateOf(rows)).toBe(states[number]);
          }
          expect(next).toBe(result.length);
          await client.reply(client.say(`realtime:${name}`, "phx_leave", {}));
          client.items.length = 0;
        }
      },
    ),
    { numRuns: RUNS },
  );
});
