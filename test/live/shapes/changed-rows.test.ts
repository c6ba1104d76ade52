import { type Row, Shape, ShapeStream } from "@electric-sql/client";
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { anonKey, openRealtimeFixture, type RealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { countRuns } from "../queries/count-runs.ts";
import { makeRandom } from "../queries/random.ts";

/** Values of each type, whose texts differ between settings, casts and the log. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  int2: ["-1", "7"],
  int8: ["9007199254740993", "0"],
  float4: ["0.1", "'NaN'", "1e30"],
  float8: ["0.30000000000000004", "'-Infinity'", "1e-300"],
  numeric: ["1.500", "'NaN'", "12345678901234567890.123"],
  bool: ["true", "false"],
  text: ["''", "'é\"\\\n\t\u007f'", "'\u0001'", "repeat('long ', 5)"],
  "varchar(20)": ["' a '", "'b'"],
  "char(5)": ["'a'", "'b  '"],
  name: ["'n'", "'m'"],
  uuid: ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "gen_random_uuid()"],
  json: ["'{\"a\" : 1}'", "'[1,  2]'"],
  jsonb: ['\'{"b" : 1, "a": [true]}\'', "'null'"],
  bytea: ["'\\x00ff'", "'\\x'"],
  date: ["'2024-02-29'", "'infinity'", "'0044-03-15 BC'"],
  time: ["'12:30:00.5'", "'24:00'"],
  timetz: ["'12:30+05:30'", "'00:00-08'"],
  timestamp: ["'2024-07-01 12:00:00.123456'", "'infinity'"],
  timestamptz: ["'2024-07-01 12:00+02'", "'1850-01-01 00:00+00'", "'-infinity'"],
  interval: ["'1 year 2 mons -3 days 04:05:06.7'", "'1 day'"],
  inet: ["'10.0.0.1'", "'10.0.0.0/8'"],
  "int4[]": ["'{1,null}'", "'{}'"],
  "bool[]": ["'{t,f}'", "'{}'"],
  mood: ["'happy'", "'sad'"],
  positive: ["1", "2"],
};
const COLUMNS = Object.keys(VALUES).map((type, number) => ({ name: `c${number}`, type, values: VALUES[type]! }));

const SCHEMA = `
  create type public.mood as enum ('happy', 'sad');
  create domain public.positive as int check (value > 0);
  create table public.typed (id int, part text, ${COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ")},
    long text, doubled int generated always as (id * 2) stored, primary key (part, id));
  create table public.plain (id int primary key, owner text not null, long text, ${COLUMNS.filter(
    ({ type }) => !/char\(5|inet|\[|mood|positive/.test(type),
  )
    .map(({ name, type }) => `${name} ${type}`)
    .join(", ")});
  alter table public.plain enable row level security, alter column long set storage external;
  alter table public.typed alter column long set storage external;
  create policy own on public.plain for select using (owner = (select auth.jwt() ->> 'sub'));
  grant select on public.typed, public.plain to authenticated;
  insert into public.typed (id, part) select n, 'p' || n % 2 from generate_series(1, 6) n;
  insert into public.plain (id, owner) select n, case when n % 3 = 0 then 'bob' else 'ann' end from generate_series(1, 9) n;`;

const claims = { sub: "ann" };
const headers = { apikey: anonKey, authorization: `Bearer ${token({ role: "authenticated", iat: 1, ...claims })}` };

/** Fixtures that are open for all tests. London has another offset in summer, and had one in 1850. */
const fixtures = new Map<string, RealtimeFixture>();
let fixture: RealtimeFixture;
let owner: pg.Client;
const abort = new AbortController();

beforeAll(async () => {
  for (const timezone of ["UTC", "Europe/London"]) {
    const setTimezone = `do $$ begin execute format('alter database %I set timezone = %L', current_database(), '${timezone}'); end $$;`;
    const opened = await openRealtimeFixture(setTimezone + SCHEMA, { ADMIN_PORT: "0" });
    await opened.owner.query(`set timezone = '${timezone}'`);
    fixtures.set(timezone, opened);
  }
  useFixture("UTC");
});
afterAll(async () => {
  abort.abort();
  for (const each of fixtures.values()) await each.close();
});

function useFixture(timezone: string): void {
  fixture = fixtures.get(timezone)!;
  ({ owner } = fixture);
}

async function follow(params: { readonly table: string; readonly where?: string }): Promise<Shape<Row>> {
  const url = `${fixture.service.url}/v1/shape`;
  const stream = new ShapeStream<Row>({ url, params, headers, liveSse: true, signal: abort.signal });
  const shape = new Shape<Row>(stream as ConstructorParameters<typeof Shape<Row>>[0]);
  await until(() => stream.isUpToDate);
  return shape;
}

/** Reads the rows like a client that begins now. */
async function readRows(table: string): Promise<string[]> {
  const response = await fetch(`${fixture.service.url}/v1/shape?table=${table}&offset=-1`, { headers });
  const messages = (await response.json()) as readonly { readonly value?: Readonly<Record<string, string | null>> }[];
  return messages.flatMap(({ value }) => (value ? JSON.stringify(Object.entries(value).toSorted()) : [])).toSorted();
}

async function readAsOwner(table: string): Promise<string[]> {
  const { fields } = await owner.query(`select * from public.${table} limit 0`);
  const texts = fields.map(({ name }) => `${name}::text`).join(", ");
  const { rows } = await owner.query(
    `select ${texts} from public.${table} ${table === "plain" ? "where owner = 'ann'" : ""}`,
  );
  return rows.map((row) => JSON.stringify(Object.entries(row).toSorted())).toSorted();
}

const isUpToDate = (table: string) => async () =>
  JSON.stringify(await readRows(table)) === JSON.stringify(await readAsOwner(table));

/** A shape is run after each change while transactions run that ran when it was opened, of other databases too. */
async function untilNothingRuns(table: string): Promise<void> {
  for (let number = 0, runs = -1; runs !== (await countRuns(fixture.service)); number++) {
    runs = await countRuns(fixture.service);
    await owner.query(`update public.${table} set c2 = ${number} where id = 1`);
    await until(isUpToDate(table));
  }
}

test.each([
  ["UTC", "plain"],
  ["Europe/London", "plain"],
  ["UTC", "typed"],
])("each value is the text that a cast gives, with the time zone %s, in the table %s", async (timezone, table) => {
  useFixture(timezone);
  await follow({ table });
  const isChanged = table === "plain" && timezone === "UTC";
  if (isChanged) await untilNothingRuns(table);
  const random = makeRandom(1);
  const [runs, statements] = [await countRuns(fixture.service), 60];
  const { fields } = await owner.query(`select * from public.${table} limit 0`);
  const columns = COLUMNS.filter(({ name }) => fields.some((field) => field.name === name));
  for (let step = 0; step < statements; step++) {
    const { name, values } = columns[step % columns.length]!;
    const value = random(6) === 0 ? "null" : values[random(values.length)]!;
    const long = random(10) === 0 ? ", long = repeat(gen_random_uuid()::text, 300)" : "";
    await owner.query(`update public.${table} set ${name} = ${value} ${long} where id = ${1 + random(5)}`);
    await until(isUpToDate(table));
  }
  const added = (await countRuns(fixture.service)) - runs;
  if (isChanged) expect(added).toBeLessThan(statements / 2);
  else expect(added).toBeGreaterThan(statements / 6);
});

test("rows that come, go and move between owners are those of the caller", async () => {
  useFixture("UTC");
  const shape = await follow({ table: "plain", where: "id > 2" });
  const expected = async () => {
    const { rows } = await owner.query("select id, c2 from public.plain where owner = 'ann' and id > 2 order by id");
    return rows.map(({ id, c2 }) => [id, c2]);
  };
  const found = () =>
    shape.currentRows.map(({ id, c2 }) => [Number(id), c2] as const).toSorted(([one], [other]) => one - other);
  for (const statement of [
    "update public.plain set c2 = 1 where id = 4",
    "update public.plain set owner = 'bob', c2 = 2 where id = 4",
    "update public.plain set c2 = 3 where id = 4",
    "update public.plain set owner = 'ann' where id in (3, 4)",
    "update public.plain set c2 = 4 where id in (3, 4); update public.plain set owner = 'bob' where id = 3",
    "update public.plain set c2 = 5 where id = 5; delete from public.plain where id = 5",
    "delete from public.plain where id = 7; insert into public.plain (id, owner) values (7, 'bob'), (17, 'ann')",
    "update public.plain set id = id + 100 where id = 8; update public.plain set c2 = 6 where id = 108",
    "delete from public.plain where owner = 'ann'",
  ]) {
    await owner.query(`begin; ${statement}; commit`);
    await expect.poll(async () => JSON.stringify(found()) === JSON.stringify(await expected())).toBe(true);
  }
});
