import { expect, test } from "vitest";
import { readQueryDependencies } from "../../../live/dependencies/read-query-dependencies.ts";
import { useFixture } from "../../fixture.ts";
import { slowPropertyRuns } from "../../property-runs.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { EventClient } from "../queries/event-client.ts";
import { makeRandom } from "../queries/random.ts";
import { CHANGES, GROUND, generateFunctions } from "./generated-functions.ts";

/** Definitions, each of which is the first of three that call each other. */
const FUNCTIONS = 2_000;
/** They are live at the same time. */
const BATCH = 50;
/** A result that is still wrong after so many commits stays so. */
const LAST_BEAT = 300;
/** The least share of live reads among those that are refused or live, and of changed ones among the live. */
const LEAST_LIVE_SHARE = 0.4;
const LEAST_CHANGED_SHARE = 0.2;

const DROP_GENERATED = `do $$ declare each record; begin
  for each in select oid::regclass as name from pg_class where relname ~ '^f\\d+_rows$' and relkind = 'r' loop
    execute 'drop table ' || each.name;
  end loop;
  for each in select oid::regprocedure as name from pg_proc where proname ~ '^f\\d+_[abc]$' order by proname loop
    execute 'drop function ' || each.name;
  end loop; end $$`;

const CLAIMS = { sub: "ann", role: "authenticated" };
const headers = { apikey: anonKey, authorization: `Bearer ${token(CLAIMS)}` };
const random = makeRandom(65);

const fixture = useFixture(() => openRealtimeFixture(GROUND));

type GeneratedRead = {
  readonly path: string;
  /** An expression of SQL for its present result, as JSON. */
  readonly fresh: string;
  readonly definitions: readonly string[];
};

function generateRead(number: number): GeneratedRead {
  const name = `f${number}`;
  const functions = generateFunctions(name, random);
  const definitions = functions.map(({ definition }) => definition);
  const called = `public.${functions.at(-1)!.name}`;
  const [who, k] = [["ann", "bob", "cem"][random(3)]!, random(5)];
  if (random(2) === 0)
    return { path: `rpc/${name}_a?who=${who}&k=${k}`, fresh: `to_json(${called}('${who}', ${k}))`, definitions };
  const table = `public.${name}_rows`;
  const policy = `create table ${table} (id int primary key);
    insert into ${table} values (1), (2), (3);
    alter table ${table} enable row level security;
    create policy generated on ${table} for select using (${called}('${who}', id))`;
  const rows = `(select coalesce(json_agg(json_build_object('id', id) order by id), '[]') from ${table})`;
  return { path: `${name}_rows?select=id&order=id`, fresh: rows, definitions: [...definitions, policy] };
}

async function define(reads: readonly GeneratedRead[]): Promise<void> {
  const { owner } = fixture;
  const all = [
    "set check_function_bodies = off",
    ...reads.flatMap(({ definitions }) => definitions),
    "grant usage on schema shelf to authenticated",
    "grant select on all tables in schema public, shelf to authenticated",
    "grant select on all sequences in schema public to authenticated",
    "grant execute on all functions in schema public to authenticated",
  ];
  await owner.query(all.join(";\n"));
  await until(async () => (await fetch(urlOf(reads.at(-1)!), { headers })).status !== 404);
}

function urlOf({ path }: GeneratedRead): string {
  return `${fixture.service.url}/rest/v1/${path}`;
}

/** Returns the results of the expressions for the caller; null for those that fail. */
async function readFresh(expressions: readonly string[]): Promise<(string | null)[]> {
  const { owner } = fixture;
  await owner.query("begin");
  await owner.query("set local role authenticated; set local search_path = public");
  await owner.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify(CLAIMS)]);
  const { rows } = await owner.query<{ result: unknown }>(
    "select public.read_fresh(expression) as result from unnest($1::text[]) with ordinality as read (expression, number) order by number",
    [expressions],
  );
  await owner.query("commit");
  return rows.map(({ result }) => (result === null ? null : JSON.stringify(result)));
}

type LiveRead = GeneratedRead & { readonly client: EventClient };

/** Null: the read is refused as not live. */
async function open(read: GeneratedRead): Promise<LiveRead | null> {
  try {
    return { ...read, client: await EventClient.open(urlOf(read), headers) };
  } catch (error) {
    expect(String(error)).toContain("NOT_LIVE");
    return null;
  }
}

/** Returns the results that still differ from fresh ones many commits after the last change. */
async function findStale(live: readonly LiveRead[], beats: EventClient): Promise<string[]> {
  const fresh = await readFresh(live.map((each) => each.fresh));
  const stale = () =>
    live.filter(({ client }, index) => fresh[index] !== null && JSON.stringify(client.result) !== fresh[index]);
  for (let beat = 0; beat < LAST_BEAT && stale().length > 0; beat++) {
    const { rows } = await fixture.owner.query<{ number: number }>(
      "update public.beats set number = number + 1 returning number",
    );
    await beats.untilResult([rows[0]!]);
  }
  return stale().map(({ path, definitions, client }) =>
    [path, `has ${JSON.stringify(client.result)}`, ...definitions].join("\n"),
  );
}

const counts = { live: 0, changed: 0, refused: 0, failing: 0 };

const batches = Array.from({ length: Math.ceil(slowPropertyRuns(FUNCTIONS) / BATCH) }, (_, index) => index * BATCH);

test.each(batches)(
  "reads of generated functions have fresh results after each change, or are refused as not live (from %i)",
  async (first) => {
    const { service, owner } = fixture;
    const generated = Array.from({ length: BATCH }, (_, index) => generateRead(first + index));
    await define(generated);
    const results = await readFresh(generated.map(({ fresh }) => fresh));
    const reads = generated.filter((_, index) => results[index] !== null);
    const beats = await EventClient.open(`${service.url}/rest/v1/beats?select=number`, headers);
    const opened: (LiveRead | null)[] = [];
    for (const read of reads) opened.push(await open(read));
    const live = opened.filter((each) => each !== null);
    const stale: string[] = [];
    for (const change of CHANGES) {
      await owner.query(change);
      stale.push(...(await findStale(live, beats)).map((each) => `${change}\n${each}`));
      if (stale.length > 0) break;
    }
    counts.live += live.length;
    counts.changed += live.filter(({ client }) => new Set(client.results).size > 1).length;
    counts.refused += reads.length - live.length;
    counts.failing += generated.length - reads.length;
    for (const { client } of [...live, { client: beats }]) client.close();
    await owner.query(DROP_GENERATED);
    expect(stale).toEqual([]);
  },
);

test("most of these reads are live, and many of those change", () => {
  const { live, changed, refused } = counts;
  expect(live / (live + refused), JSON.stringify(counts)).toBeGreaterThan(LEAST_LIVE_SHARE);
  expect(changed / live, JSON.stringify(counts)).toBeGreaterThan(LEAST_CHANGED_SHARE);
});

test("each claim that a generated function reads is known, unless all are", async () => {
  const { owner } = fixture;
  const pick = makeRandom(66);
  const sharing: string[] = [];
  for (let number = 0; number < slowPropertyRuns(400); number++) {
    let claims = 0;
    const functions = generateFunctions(`f${number}`, pick);
    const definitions = functions.map(({ definition }) =>
      definition.replaceAll("->> 'sub'", () => `->> 'claim${claims++}'`),
    );
    await owner.query(["set check_function_bodies = off", ...definitions].join(";\n"));
    const text = `select public.${functions.at(-1)!.name}('ann', 1)`;
    const statement = { text, role: "authenticated", searchPath: "public" };
    const { claims: known } = await readQueryDependencies((work) => work(owner), statement, "supabase_realtime");
    const missing = Array.from({ length: claims }, (_, index) => `claim${index}`).filter(
      (claim) => known !== "all" && !known.has(claim),
    );
    expect({ definitions, missing }).toEqual({ definitions, missing: [] });
    if (known !== "all" && claims > 0 && definitions.some((each) => each.includes("language plpgsql")))
      sharing.push(text);
    await owner.query(DROP_GENERATED);
  }
  expect(sharing.length).toBeGreaterThan(0);
});
