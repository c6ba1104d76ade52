import pg from "pg";
import { expect, test } from "vitest";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";
import { makeRandom } from "../queries/random.ts";
import { openRestartedFixture, type RestartedFixture, readShapeAs } from "./restarted-service.ts";

const TABLES = 3;
const SHAPES = 100;
const STEPS = 40;
const PEOPLE = ["ann", "bob", "cem"];
const LEVELS = [0, 2, 4];
const BOOLEANS = ["true", "false", "null"];
const WHERES = [
  "true",
  "room in (1, 2)",
  "body like 'b1%'",
  "id < 20",
  "n >= 2 and room = 1",
  "owner = 'ann'",
  "not done",
];

const MEMBERSHIPS = `
  create table public.rooms (id int primary key, is_open bool not null);
  create table public.guests (room int, person text, primary key (room, person));
  alter table public.guests enable row level security;
  create policy own on public.guests for select using (person = (select auth.jwt() ->> 'sub'));
  create function public.may_enter(room int) returns bool language sql stable security definer set search_path = '' as
    $$ select exists (select from public.guests g join public.rooms r on r.id = g.room
      where g.room = may_enter.room and r.is_open and g.person = auth.jwt() ->> 'sub') $$;
  grant select on public.rooms, public.guests to authenticated;
  grant execute on function public.may_enter to authenticated;
  insert into public.rooms select n, n % 2 = 0 from generate_series(1, 4) n;`;

type Random = (below: number) => number;
const oneOf = <Item>(items: readonly Item[], random: Random): Item => items[random(items.length)]!;

/** Returns a condition for a policy of the table. It reads earlier tables only, so that no policy reads itself. */
function randomCondition(table: number, random: Random): string {
  const conditions = [
    "owner = (select auth.jwt() ->> 'sub')",
    "n < coalesce((auth.jwt() ->> 'level')::int, 0)",
    `exists (select from public.guests g where g.room = t${table}.room and g.person = (select auth.jwt() ->> 'sub'))`,
    "room in (select r.id from public.rooms r where r.is_open)",
    "public.may_enter(room)",
    `body < 'b${random(30)}'`,
    "done",
    // It reads whole rows.
    `t${table}::text like '%1%'`,
    ...(table === 0 ? [] : [`exists (select from public.t${table - 1} o where o.id = t${table}.n)`]),
  ];
  const one = oneOf(conditions, random);
  return [one, `${one} or ${oneOf(conditions, random)}`, `${one} and ${oneOf(conditions, random)}`][random(3)]!;
}

function policyOf(table: number, random: Random): string {
  return `create policy readable on public.t${table} for select using (${randomCondition(table, random)});`;
}

function randomSchema(random: Random): string {
  const tables = Array.from({ length: TABLES }, (_, table) => {
    const key = random(3) === 0 ? "primary key (id, room)" : "primary key (id)";
    const restriction = `create policy less on public.t${table} as restrictive for select using (${randomCondition(table, random)});`;
    return `
      create table public.t${table} (id int not null, room int not null, n int, owner text, body text, done bool, ${key});
      alter table public.t${table} enable row level security, replica identity ${oneOf(["default", "full"], random)};
      ${policyOf(table, random)}
      ${random(3) === 0 ? restriction : ""}
      grant select on public.t${table} to authenticated;
      insert into public.t${table} select k, 1 + k % 4, k % 6, (array['ann', 'bob', 'cem'])[1 + k % 3], 'b' || k, k % 2 = 0 from generate_series(1, 30) k;`;
  });
  return MEMBERSHIPS + tables.join("");
}

function randomStatement(random: Random): string {
  const [table, room, id, n] = [random(TABLES), 1 + random(4), 1 + random(40), random(6)];
  const person = oneOf(PEOPLE, random);
  const name = `public.t${table}`;
  return [
    `insert into ${name} values (${id}, ${room}, ${n}, '${person}', 'b${random(30)}', ${oneOf(BOOLEANS, random)}) on conflict do nothing`,
    `update ${name} set body = 'b${random(30)}', n = ${n} where id between ${id} and ${id + 3}`,
    `update ${name} set done = ${oneOf(BOOLEANS, random)} where id between ${id} and ${id + 2}`,
    `update ${name} set body = 'b${random(30)}' where id = ${id}`,
    `update ${name} set room = ${room}, owner = ${random(4) === 0 ? "null" : `'${person}'`} where id = ${id}`,
    `update ${name} set id = id + 100 where id = ${id}`,
    `update ${name} set id = id - 100 where id between ${id + 80} and ${id + 110}`,
    `delete from ${name} where id = ${id}`,
    `update public.rooms set is_open = ${random(2) === 0} where id = ${room}`,
    `insert into public.guests values (${room}, '${person}') on conflict do nothing`,
    `delete from public.guests where person = '${person}' and room = ${room}`,
    `drop policy readable on ${name}; ${policyOf(table, random)}`,
    `truncate ${name}`,
  ][random(oneOf([11, 11, 11, 11, 11, 11, 11, 12, 13], random))]!;
}

function openShapes({ follow }: RestartedFixture, random: Random) {
  return Array.from({ length: SHAPES }, (_, number) => {
    const claims = { sub: oneOf(PEOPLE, random), level: oneOf(LEVELS, random), number: number % 7 };
    const shape = { table: `t${random(TABLES)}`, where: oneOf(WHERES, random), claims };
    return { shape, follower: follow({ ...shape, liveSse: random(2) === 0 }), before: [] as string[] };
  });
}

async function commitRandomly(owner: pg.Client, random: Random): Promise<void> {
  const statements = Array.from({ length: 1 + random(3) }, () => randomStatement(random));
  const end = random(10) === 0 ? "rollback" : "commit";
  await owner.query(["begin", ...statements, end].join("; ")).catch(async (error) => {
    if (!(error instanceof pg.DatabaseError)) throw error;
    await owner.query("rollback");
  });
}

test.each(Array.from({ length: propertyRuns(5) }, (_, seed) => seed + 1))(
  "shapes under random policies have what their callers read after each transaction, and were sent nothing else (seed %i)",
  async (seed) => {
    const random = makeRandom(seed);
    await using opened = new AsyncDisposableStack();
    const fixture = opened.adopt(await openRestartedFixture(randomSchema(random)), (each) => each.close());
    const { owner } = fixture;
    const shapes = openShapes(fixture, random);
    for (let step = 0; step <= STEPS; step++) {
      if (step > 0) await commitRandomly(owner, random);
      for (const each of shapes) {
        const { shape, follower, before } = each;
        const after = await readShapeAs(owner, shape);
        await until(() => follower.stream.isUpToDate && JSON.stringify(follower.rows()) === JSON.stringify(after));
        const readable = new Set([...before, ...after]);
        const foreign = follower.takeReceived().filter((row) => !readable.has(row));
        expect({ shape, step, foreign }).toEqual({ shape, step, foreign: [] });
        each.before = after;
      }
    }
  },
);
