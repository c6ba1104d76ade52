import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { tokenFor } from "../../graphql.ts";
import { atMost, propertyRuns, slowPropertyRuns } from "../../property-runs.ts";
import { PUBLIC_SCHEMAS } from "../../schemas/public-schemas.ts";
import { serveSchema } from "../../schemas/served.ts";
import { serve } from "../../serve.ts";
import { BY_GRAFAST } from "../grafast/grafast-stages.ts";
import {
  answerOf,
  type Comparison,
  compareAnswers,
  compiledShare,
  operationOutcomes,
  type ServicePair,
  servePair,
} from "./oracle.ts";

const sqlOf = (file: string) => readFileSync(join(import.meta.dirname, "../../plugins", file), "utf8");

/** Values of all kinds that a column can have, whose spelling differs between Postgres and JavaScript, and functions. */
const VALUES = `
  create type public.mood as enum ('happy', 'very sad', 'true', 'a-b');
  create domain public.amount as numeric check (value > 0);
  create domain public.moods as public.mood;
  create type public.pair as (first int, second text);
  create table public.values (
    id bigint generated always as identity primary key, label text unique, small int2, whole int4, large int8, single float4,
    double float8, exact numeric, flag boolean, code uuid, bytes bytea, at timestamptz, local timestamp, day date, clock time,
    zoned timetz, span interval, data jsonb, plain json, feeling public.mood, worth public.amount, own_feeling public.moods,
    both_parts public.pair, place point, period tstzrange, host inet, net cidr, bits varbit, edge lseg, area box, outline polygon, track path,
    round circle, level line, days daterange, sizes int4range, worths numrange, spans interval[], periods tstzrange[], places point[], hosts inet[], price money, padded char(5),
    texts text[], wholes int[], doubles float8[], moments timestamptz[], feelings public.mood[], documents jsonb[],
    grid int[], flags boolean[], codes uuid[], parent_id bigint references public.values
  );
  comment on table public.values is '@order at desc, double';
  create index on public.values (parent_id);
  create index on public.values (feeling);
  create index on public.values using gin (texts);
  create index on public.values (at);
  insert into public.values (label, small, whole, large, single, double, exact, flag, code, bytes, at, local, day, clock, zoned, span,
      data, plain, feeling, worth, own_feeling, both_parts, place, period, host, net, bits, price, padded, texts, wholes, doubles,
      moments, feelings, documents, grid, flags, codes, edge, area, outline, track, round, level, days, sizes, worths, spans, periods, places, hosts, parent_id)
    select 'label ' || n, n, -n, 9007199254740993 + n, 10::float4 ^ (n - 12), (case when n % 5 = 0 then 0 else 1.1 end) * 10::float8 ^ (n * 3 - 30),
      n * 1.50, n % 2 = 0, ('00000000-0000-4000-8000-00000000000' || n % 10)::uuid, decode(repeat('00ff5c0a', n * 9), 'hex'),
      case n % 7 when 3 then null else timestamptz '2026-01-01 00:00:00+02' + n * interval '1.000001 s' end,
      timestamp '2026-01-01' + n * interval '1.1 s', date '0999-12-31' + n * 100000, time '03:04:05.6789', timetz '24:00:00-05:30',
      interval '1 year -3 days 04:05:06.789' * n, jsonb_build_object('b', n, 'a', array[1.50, n], 'c d', '"' || chr(n + 1)),
      '{"z": 1e5, "2": 1, "1": [ ]}', (array['happy', 'very sad', 'true', 'a-b'])[1 + n % 4]::public.mood, n, 'a-b',
      row(n::int, 'two')::public.pair, point(n, 1e20), tstzrange('2026-01-01Z', null), ('10.0.0.' || n)::inet, '10.0.0.0/8', b'101', n, 'ab',
      array['a "quoted" \\\\ {x}', null, 'b', 'two words'], array[n, null], array[n / 3.0, 1e25], array[timestamptz '2026-01-01Z', null],
      array['very sad', null]::public.mood[], array['{"a": 1}', null]::jsonb[], case when n % 4 = 0 then array[[1, 2], [3, 4]] else '{}' end,
      array[true, null], array['00000000-0000-4000-8000-000000000001'::uuid],
      lseg(point(n, 0.1), point(-n, 1e-7)), box(point(n, 1), point(0.5, n)), polygon(3, circle(point(0, n), 2)), path(polygon(4, circle(point(n, 1), 1))),
      circle(point(n, n), n / 7.0), line(point(n, 1), point(1, 2.5)), case n % 3 when 0 then 'empty' when 1 then daterange('2026-01-01', null) end::daterange,
      int4range(null, n::int), numrange(n * 1.50, n * 2.25, '[]'), array[interval '-1.5 s', null], array[tstzrange(null, '2026-01-01Z', '(]'), 'empty', null],
      array[point(n, 0), null], array['10.0.0.1'::inet, '10.0.0.0/24', null], null
    from generate_series(1, 18) as n;
  update public.values set parent_id = 1 + id % 5 where id > 3;
  insert into public.values (label, at) values ('infinite', 'infinity'), ('before Christ', '0044-03-15 BC'), (null, '12345-01-01');
  insert into public.values (label, single, double) values ('none', 'NaN', '-Infinity'), ('zero', '-0', '-0');
  create function public.shout(value public.values, times int default 2) returns text language sql stable
    as 'select repeat(upper(value.label), times)';
  create function public.nearby(value public.values, most int) returns setof public.values language sql stable
    as 'select * from public.values where id <> value.id order by abs(id - value.id), id limit most';
  create function public.numbers(most int default 3) returns setof int language sql stable
    as 'select case when n <> 2 then n end from generate_series(1, most) as n';
  create function public.latest() returns public.values language sql stable as 'select * from public.values order by id desc limit 1';
  create function public.absent() returns public.values language sql stable as 'select null::public.values';
  create function public.sum_of(one numeric, other numeric default 1) returns numeric language sql immutable as 'select one + other';
  create view public.labels as select label, flag from public.values;
  create view public.highest as select max(whole) as whole from public.values where false;
  create table public.notes (value_id bigint not null references public.values, at timestamptz not null default now(), text text, primary key (value_id, at));
  insert into public.notes (value_id, text) select id, 'note' from public.values where id % 2 = 0;
  create table public.secrets (id int primary key, owner text, hidden text, note_of bigint not null references public.values);
  alter table public.secrets enable row level security;
  create policy own on public.secrets for select using (owner = current_user);
  insert into public.secrets select n, (array['anon', 'authenticated'])[1 + n % 2], 'hidden', n from generate_series(1, 9) as n;
  create table public.replies (id int primary key, secret_id int not null references public.secrets);
  insert into public.replies select n, n from generate_series(1, 9) as n;
  grant usage on schema public to anon, authenticated;
  grant select on all tables in schema public to anon, authenticated;
  revoke select on public.secrets from anon;
  grant select (id, owner) on public.secrets to anon;
  grant execute on all functions in schema public to anon, authenticated;
`;

/** Rows, some of which lead nowhere or to a row that a policy hides, and a table with nothing but references. */
const REFERENCES = `
  insert into public.items values (1, 'book', 'A book', 100, null), (2, 'song', 'A song', null, 200);
  insert into public.countries select n, 'country ' || n from generate_series(1, 3) as n;
  insert into public.regions select n, 1 + n % 3 from generate_series(1, 7) as n;
  insert into public.towns select n, 1 + n % 7 from generate_series(1, 9) as n;
  alter table public.countries enable row level security;
  create policy hide_one on public.countries for select using (id <> 2);
  create table public.streets (id int primary key, town_id int references public.towns);
  comment on table public.streets is e'@ref region via:(town_id)->towns(id);(region_id)->regions(id) singular\\n@ref land via:(town_id)->towns(id);(region_id)->regions(id);(country_id)->countries(id) singular';
  insert into public.streets select n, case when n % 4 > 0 then 1 + n % 9 end from generate_series(1, 12) as n;
  grant select on public.streets to authenticated, service_role;
  grant select on public.items, public.countries, public.regions, public.towns to anon, service_role;
`;

/** A number of random size and sign. */
const NUMBER =
  "(case floor(random() * 6) when 0 then 0 when 1 then floor(random() * 20) - 10 else (random() - 0.5) * 10 ^ (random() * 40 - 20) end)";
const POINT = `point(${NUMBER}, ${NUMBER})`;
const POINTS = `(select string_agg(${POINT}::text, ',') from generate_series(0, (random() * 4)::int) where n > 0)`;
const INTERVAL = `make_interval((random() * 20 - 10)::int, (random() * 30 - 15)::int, 0, (random() * 80 - 40)::int, (random() * 200 - 100)::int, (random() * 200 - 100)::int, random() * 200 - 100)`;
const rangeOf = (
  type: string,
  bound: string,
) => `(select case floor(random() * 8) when 0 then 'empty' when 1 then null else
  ${type}(case when random() < 0.8 then least(one, other) end, case when random() < 0.8 then greatest(one, other) end, (array['[)', '[]', '()', '(]'])[1 + floor(random() * 4)::int]) end
  from (select ${bound} as one, ${bound} as other where n > 0) as bounds)`;
const MOMENT = `timestamptz '2026-01-01' + ${INTERVAL}`;

const OBJECTS = `
  create type public.word_range as range (subtype = text);
  create domain public.own_range as int8range;
  create type public.both_parts as (span interval, days daterange);
  create table public.values (
    id int primary key, span interval, place point, level line, edge lseg, area box, track path, outline polygon, round circle, days daterange, moments tstzrange,
    locals tsrange, wholes int4range, larges int8range, exacts numrange, words public.word_range, owns public.own_range, host inet, net cidr, mac macaddr,
    spans interval[], places point[], ranges numrange[], hosts inet[], "both" public.both_parts
  );
  comment on table public.values is '@list';
  select setseed(0.5);
  insert into public.values select n, case when random() < 0.9 then ${INTERVAL} end, ${POINT},
    (case when random() < 0.1 then '{0,1,-3}' else format('{%s,%s,%s}', 1 + random() * 9, ${NUMBER}, ${NUMBER}) end)::line, lseg(${POINT}, ${POINT}), box(${POINT}, ${POINT}),
    (case when random() < 0.5 then '[' || ${POINTS} || ']' else '(' || ${POINTS} || ')' end)::path, ('(' || ${POINTS} || ')')::polygon, circle(${POINT}, abs(${NUMBER})),
    ${rangeOf("daterange", `(case when random() < 0.1 then '-infinity' else date '2026-01-01' + (random() * 4000)::int end)`)}, ${rangeOf("tstzrange", MOMENT)},
    ${rangeOf("tsrange", `timestamp '2026-01-01' + ${INTERVAL}`)}, ${rangeOf("int4range", "(random() * 100)::int")}, ${rangeOf("int8range", "9007199254740993 + (random() * 100)::int8")},
    ${rangeOf("numrange", "(random() * 100)::numeric(6, 3)")}, ${rangeOf("public.word_range", `repeat(chr(32 + (random() * 900)::int), 2) || '",' || random()`)},
    ${rangeOf("int8range", "(random() * 100)::int8")}, (array['10.0.0.1', '10.0.0.1/32', '10.1.0.0/16', '::1', '2001:db8::1/128', '2001:db8::/32'])[1 + n % 6]::inet,
    (array['10.0.0.1', '10.1.0.0/16', '::1', '2001:db8::/32'])[1 + n % 4]::cidr, '08:00:2b:01:02:03', array[${INTERVAL}, null, ${INTERVAL}],
    case when random() < 0.9 then array[${POINT}, null, ${POINT}] else '{}' end, array[${rangeOf("numrange", "(random() * 100)::numeric")}], array['::1/128'::inet, null],
    case when random() < 0.9 then row(${INTERVAL}, ${rangeOf("daterange", "date '2026-01-01' + (random() * 40)::int")})::public.both_parts end
    from generate_series(1, ${propertyRuns(3_000)}) as n;
  grant usage on schema public to anon;
  grant select on public.values to anon;
`;

async function expectReferencesInOneStatement(services: ServicePair): Promise<void> {
  const operation = {
    query: "{ streets(first: 20) { edges { node { id region { id } land { name } town { country { name } } } } } }",
    variables: {},
  };
  const answer = await answerOf(services.compiling, operation, tokenFor(1));
  expect(answer).toEqual(await answerOf(services.plain, operation, tokenFor(1)));
  expect(answer.errors).toBeUndefined();
  type Street = { readonly region: object | null; readonly land: object | null };
  const streets = JSON.parse(answer.data!).streets.edges.map(({ node }: { readonly node: Street }) => node);
  expect(streets).toHaveLength(12);
  expect(streets[0]).toMatchObject({
    region: { id: "3" },
    land: { name: "country 1" },
    town: { country: { name: "country 1" } },
  });
  expect(streets[3]).toMatchObject({ region: null, land: null, town: null });
  const hidden = ({ region, land }: Street) => region !== null && land === null;
  expect(streets.filter(hidden).length).toBeGreaterThan(0);
  expect(await operationOutcomes(services.compiling)).toEqual({ compiled: 1 });
}

type LocalSchema = {
  readonly title: string;
  readonly sql: string;
  /** The least share of operations that are compiled: values of some types are not. */
  readonly share: number;
  /** Comparisons that run before those of the generated operations. */
  readonly first?: (services: ServicePair) => Promise<void>;
};

const LOCAL_SCHEMAS: readonly LocalSchema[] = [
  { title: "values", sql: VALUES, share: 0.9 },
  { title: "odd names and shapes", sql: sqlOf("odd-schema.sql"), share: 0.5 },
  { title: "clashing names", sql: sqlOf("clashing-schema.sql"), share: 0.5 },
  {
    title: "interfaces and references, which lead through several tables in one statement",
    sql: sqlOf("polymorphic-schema.sql") + REFERENCES,
    share: 0.9,
    first: expectReferencesInOneStatement,
  },
];
/** Schemas of other projects: all of them, or one. */
const FOREIGN_SCHEMAS = atMost(propertyRuns(3), ["backstage", "medusa", "logto"] as const);
const TOKENS = [null, tokenFor(1), tokenFor(1, { role: "service_role" })];

describe("answers are the same compiled and not", () => {
  test.each(LOCAL_SCHEMAS)("over a schema of $title", async ({ sql, share, first }) => {
    await using opened = new AsyncDisposableStack();
    const database = await cloneDatabase("empty");
    opened.defer(() => database.drop());
    await execute(database, sql);
    const services = opened.use(await servePair(database));
    await first?.(services);
    const comparisons: Comparison[] = [];
    for (const token of TOKENS) comparisons.push(await compareAnswers(services, token, slowPropertyRuns(300)));
    expect(await compiledShare(services.compiling, comparisons)).toBeGreaterThanOrEqual(share);
  });

  test("of random values of the types that are objects in GraphQL", async () => {
    await using opened = new AsyncDisposableStack();
    const database = await cloneDatabase("empty");
    opened.defer(() => database.drop());
    await execute(database, OBJECTS);
    const services = opened.use(await servePair(database, { MAX_PAGE_SIZE: "5000" }));
    const point = "{ x y }";
    const range = "{ start { value inclusive } end { value inclusive } }";
    const interval = "{ years months days hours minutes seconds __typename }";
    const fields = `id span ${interval} place ${point} level { a ${point} b ${point} } edge { a ${point} b ${point} } area { a ${point} b ${point} }
      track { isOpen points ${point} } outline { points ${point} } round { center ${point} radius } days ${range} moments ${range} locals ${range}
      wholes ${range} larges ${range} exacts ${range} words ${range} owns ${range} host net mac spans ${interval} places ${point} ranges ${range} hosts both { span ${interval} days ${range} }`;
    const query = `{ values(limit: 5000) { ${fields} } }`;
    const rowsOf = async (service: Service) => {
      const { data, errors } = await answerOf(service, { query, variables: {} }, null);
      expect(errors).toBeUndefined();
      return JSON.parse(data!).values as readonly Readonly<Record<string, unknown>>[];
    };
    const [rows, byGrafast] = [await rowsOf(services.compiling), await rowsOf(services.plain)];
    const differences = rows.flatMap((row, index) =>
      Object.entries(row).flatMap(([field, value]) => {
        const [compiled, other] = [JSON.stringify(value), JSON.stringify(byGrafast[index]![field])];
        return compiled === other ? [] : [{ field, compiled, other }];
      }),
    );
    expect(differences.slice(0, 10)).toEqual([]);
    expect(rows).toHaveLength(propertyRuns(3_000));
    expect(byGrafast).toHaveLength(rows.length);
    expect(await operationOutcomes(services.compiling)).toEqual({ compiled: 1 });
    expect(await operationOutcomes(services.plain)).toEqual({});
  });

  test.each(FOREIGN_SCHEMAS)("over the schema %s", async (name) => {
    await using opened = new AsyncDisposableStack();
    const served = await serveSchema(PUBLIC_SCHEMAS[name]);
    opened.defer(() => served.close());
    const settings = { ADMIN_PORT: "0", PGRST_DB_SCHEMAS: served.schema.name };
    const limits = { GRAPHQL_MAX_COMPLEXITY: "1000000", GRAPHQL_MAX_TOKENS: "1000000", GRAPHQL_MAX_ALIASES: "100000" };
    const plain = await serve(served.database, { ...settings, ...limits }, BY_GRAFAST);
    opened.defer(() => plain.stop());
    const services = { compiling: served.service, plain };
    const token = tokenFor("1", { role: served.schema.role });
    const comparison = await compareAnswers(services, token, slowPropertyRuns(550));
    expect(await compiledShare(served.service, [comparison])).toBeGreaterThanOrEqual(0.95);
  });
});

async function execute({ ownerUrl }: TestDatabase, sql: string): Promise<void> {
  const owner = await connect(ownerUrl);
  await owner.query(sql);
  await owner.end();
}
