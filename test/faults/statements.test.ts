import { expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { anonKey } from "../realtime/service.ts";
import { documentedAnswers, rowOf } from "./documented.ts";
import { startServiceProcess } from "./service-process.ts";

const SCHEMA = `
  create table public.counters (id int primary key, total int not null default 0);
  insert into public.counters values (1), (2);
  create function public.count_both(one int, other int) returns int volatile language plpgsql security definer
    set deadlock_timeout = '100ms' as $$
  begin
    update public.counters set total = total + 1 where id = one;
    perform pg_sleep(0.02);
    update public.counters set total = total + 1 where id = other;
    return 1;
  end $$;
  create function public.nap() returns int volatile language sql as 'select 1 from pg_sleep(60)';
  grant execute on function public.count_both, public.nap to anon;
  create table public.locked (id int primary key); create table public.open (id int primary key);
  grant select, insert on public.locked, public.open to anon`;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const service = useFixture(() =>
  startServiceProcess({
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    DB_STATEMENT_TIMEOUT_SECONDS: "3",
    DB_LOCK_TIMEOUT_SECONDS: "1",
    DB_ACQUIRE_TIMEOUT_SECONDS: "30",
  }),
);

const JSON_BODY = { "Content-Type": "application/json" };

/** Null when it was done; without a body it is a GET. */
async function ask(path: string, body: object | null): Promise<string | null> {
  const headers = { ...JSON_BODY, apikey: anonKey };
  const options = body === null ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${service.url}/rest/v1/${path}`, options);
  if (response.ok) return null;
  return `${response.status} ${((await response.json()) as { code: string }).code}`;
}

const call = (name: string, args: object) => ask(`rpc/${name}`, args);

/** The same by GraphQL. */
async function execute(query: string): Promise<string | null> {
  const body = JSON.stringify({ query });
  const response = await fetch(`${service.url}/graphql`, { method: "POST", headers: JSON_BODY, body });
  const { errors } = (await response.json()) as { errors?: { extensions: { code: string } }[] };
  return errors?.[0]?.extensions.code ?? null;
}

const mutate = (field: string) => execute(`mutation { ${field} }`);

function tally(answers: readonly (string | null)[]): Map<string, number> {
  const refusals = new Map<string, number>();
  for (const answer of answers) if (answer) refusals.set(answer, (refusals.get(answer) ?? 0) + 1);
  return refusals;
}

test("a deadlock's victim gets an error and is rolled back, and all other statements run once", async () => {
  const name = "Deadlocks, repeatedly";
  const answers: (string | null)[] = [];
  for (let round = 0; round < 6; round++) {
    const pair = [1, 2].flatMap((one) => [
      call("count_both", { one, other: 3 - one }),
      mutate(`countBoth(input: {one: ${one}, other: ${3 - one}})`),
    ]);
    answers.push(...(await Promise.all(pair)));
  }
  const refusals = tally(answers);
  const done = answers.filter((answer) => answer === null).length;
  const { rows } = await owner.query("select total from counters order by id");
  console.log(rowOf(name, refusals, 0, done, done - rows[0].total));
  expect(refusals.size).toBeGreaterThan(0);
  expect(await documentedAnswers(name)).toEqual(expect.arrayContaining([...refusals.keys()]));
  expect(rows).toEqual([{ total: done }, { total: done }]);
});

test("a statement that exceeds the time limit is cancelled, for all its callers, and no other caller waits", async () => {
  const name = "A statement takes too long (`DB_STATEMENT_TIMEOUT_SECONDS`)";
  const answers = await Promise.all([call("nap", {}), call("nap", {}), mutate("nap")]);
  const refusals = tally(answers);
  console.log(rowOf(name, refusals, 0, 0, 0));
  expect(answers).not.toContain(null);
  expect(await documentedAnswers(name)).toEqual(expect.arrayContaining([...refusals.keys()]));
  const { rows } = await owner.query(
    "select from pg_stat_activity where query like '%pg_sleep(60)%' and state = 'active' and pid <> pg_backend_pid()",
  );
  expect(rows).toEqual([]);
});

test("a request for a locked table fails in time, and no other caller waits", async () => {
  const name = "A table is locked (`ACCESS EXCLUSIVE`)";
  const rounds = Array.from({ length: 8 });
  let id = 0;
  const all = (table: string) =>
    rounds.flatMap(() => [
      ask(`${table}?limit=1`, null),
      ask(table, { id: ++id }),
      execute(`{ ${table === "open" ? "opens" : "lockeds"} { edges { node { id } } } }`),
    ]);
  await Promise.all(all("open"));
  await owner.query("begin; lock table locked in access exclusive mode");
  const locked = Promise.all(all("locked"));
  const others = await Promise.all(all("open"));
  const refusals = tally(await locked);
  await owner.query("rollback");
  console.log(rowOf(name, refusals, 0, rounds.length, tally(others).size));
  expect(others.filter((answer) => answer !== null)).toEqual([]);
  expect([...refusals.keys()]).toContain("500 55P03");
  expect(await documentedAnswers(name)).toEqual(expect.arrayContaining([...refusals.keys()]));
});
