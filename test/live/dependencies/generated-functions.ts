/** Tables, and objects that read them although the text of no function names them. */
export const GROUND = `
  create schema shelf;
  create table public.members (id int primary key, person text not null, team int not null);
  create table public.bans (person text primary key, level int not null);
  create table public.teams (id int primary key, name text not null);
  create table public.options (name text primary key, value int not null);
  create table public.rates (id int primary key, value int not null);
  create table public."Odd names" (id int primary key, value int not null);
  create table shelf.teams (id int primary key, name text not null);
  create table public.unlisted (id int primary key);
  create table public.beats (id int primary key, number int not null);
  create sequence public.counter;
  alter publication supabase_realtime drop table public.unlisted;
  insert into public.members select n, (array['ann', 'bob', 'cem'])[1 + n % 3], n % 4 from generate_series(1, 9) as n;
  insert into public.options values ('a', 1), ('b', 2);
  insert into public.rates select n, n from generate_series(1, 3) as n;
  insert into public."Odd names" select n, n from generate_series(1, 3) as n;
  insert into public.teams values (1, 'one');
  insert into shelf.teams values (1, 'one'), (2, 'two');
  insert into public.beats values (1, 0);

  create function public.is_banned(public.members) returns boolean language sql stable security definer
    as 'select exists (select from public.bans b where b.person = $1.person)';
  create function public.option_above(int, int) returns boolean language plpgsql stable security definer
    as 'begin return $1 > (select value from public.options where name = ''a'') + $2; end';
  create operator public.@@@ (leftarg = int, rightarg = int, function = public.option_above);
  create type public.badge as (number int);
  create function public.badge_value(public.badge) returns int language sql stable security definer
    as 'select $1.number + (select count(*)::int from public.rates)';
  create cast (public.badge as int) with function public.badge_value(public.badge) as assignment;
  create function public.count_bans() returns bigint language sql stable security definer as 'select count(*) from public.bans';
  create function public.above_bans(k int, bound bigint default public.count_bans()) returns boolean language sql stable
    as 'select k > bound';
  create function public.add_banned(state int, person text) returns int language sql stable security definer
    as 'select state + (select count(*)::int from public.bans b where b.person = $2)';
  create aggregate public.total_banned(text) (sfunc = public.add_banned, stype = int, initcond = '0');
  create view public.high_rates as select id, value from public.rates where value > 2;
  create materialized view public.kept_rates as select count(*) as number from public.rates;
  create function public.team_ids() returns setof int language plpgsql stable security definer
    as 'declare t record; begin for t in select id from public.teams loop return next t.id; end loop; end';
  create function public.read_fresh(expression text) returns json language plpgsql
    as 'declare result json; begin execute ''select '' || expression into result; return result; exception when others then return null; end';
  grant execute on function public.read_fresh to authenticated;
  grant select on public.beats to authenticated;
  create function public.other_team_count() returns bigint language sql stable security definer as 'select count(*) from teams'`;

/** Each changes rows or more that some of the functions read. */
export const CHANGES = [
  "insert into public.bans values ('ann', 1) on conflict do nothing",
  "update public.options set value = value + 1 where name = 'a'",
  "update public.options set value = 0",
  "delete from public.rates where id = (select max(id) from public.rates)",
  "insert into public.rates select coalesce(max(id), 0) + 1, 7 from public.rates",
  "update public.members set team = (team + 1) % 4",
  "insert into public.bans values ('bob', 2) on conflict do nothing",
  "delete from public.bans",
  "insert into public.bans values ('cem', 3), ('ann', 2) on conflict do nothing",
  `update public."Odd names" set value = value + 1`,
  "insert into public.teams select coalesce(max(id), 0) + 1, 'more' from public.teams",
  "insert into shelf.teams select coalesce(max(id), 0) + 1, 'more' from shelf.teams",
  "delete from public.teams",
  "delete from shelf.teams where id > 1",
  "update public.members set person = case person when 'ann' then 'bob' when 'bob' then 'cem' else 'ann' end",
  "truncate public.bans",
  "select nextval('public.counter')",
  "insert into public.unlisted select coalesce(max(id), 0) + 1 from public.unlisted",
] as const;

/** Makes a condition of the text `who` and the number `k`. */
type Condition = (pick: (below: number) => number) => string;

const READS: readonly Condition[] = [
  (pick) => `exists (select from public.members m where m.team = ${pick(4)} and m.is_banned)`,
  () => "(select m.is_banned from public.members m where m.person = who order by m.id limit 1)",
  () => "exists (select from public/* the schema */. -- and the table\n bans b where b.person = who)",
  (pick) => `(select count(*) from U&"p\\0075blic" . U&"b\\0061ns") > ${pick(3)}`,
  (pick) => `k operator(public.@@@) ${pick(3)}`,
  (pick) => `k operator ( "public" /* a schema */ . @@@ ) ${pick(2)}`,
  (pick) => `row(k)::public.badge::int > ${2 + pick(4)}`,
  (pick) => `(select max(value) from public."Odd names") > ${2 + pick(4)}`,
  (pick) => `k > (select value from public.options where name = '${["a", "b"][pick(2)]}')`,
  () => "exists (table public.teams)",
  (pick) => `(select count(*) from public.high_rates) > ${pick(3)}`,
  () => "k between 1 and (select count(*) from public.rates)",
  () => "public.above_bans(k)",
  (pick) => `(select public.total_banned(m.person) from public.members m) > ${pick(4)}`,
  (pick) => `${1 + pick(3)} in (select public.team_ids())`,
  (pick) => `public.other_team_count() > ${pick(3)}`,
  (pick) => `exists (select from public.members m where m.person = who and m.team = ${pick(4)})`,
];
const HARMLESS: readonly Condition[] = [
  (pick) => `k > ${pick(4)}`,
  () => "who = coalesce(current_setting('request.jwt.claims', true)::json ->> 'sub', '')",
  () => "length(who || ' -- from public.unlisted') > 3",
  () => "$tag$ execute $tag$ like '%ex/*cute%'",
  () => "to_char(k, '999') <> upper(who) /* pg_stat_activity /* nested */ */",
];
/** The replication stream has no changes of these. */
const UNSTREAMED: readonly Condition[] = [
  (pick) => `(select last_value from public.counter) > ${pick(4)}`,
  () => "(select last_value::int from pg_sequences where sequencename = 'counter') > k",
  () => "exists (select from pg_stat_activity where pid = k)",
  () => "exists (select from pg_class where relname = who)",
  () => "(select number from public.kept_rates) > k",
  () => "exists (select from public.unlisted)",
  () => "(select n_live_tup from pg_stat_user_tables where relname = 'bans') > k",
  () => "pg_catalog.pg_stat_get_backend_pid(k) is null",
];

type GeneratedFunction = { readonly name: string; readonly definition: string };

/** Definitions of functions of `who` and `k`, each of which calls the next one. */
export function generateFunctions(name: string, pick: (below: number) => number): GeneratedFunction[] {
  const names = ["c", "b", "a"].map((level) => `${name}_${level}`);
  return names.map((each, depth) => {
    const called = depth === 0 ? [] : [call(names[depth - 1]!, pick)];
    return { name: each, definition: define(each, called, pick) };
  });
}

function call(name: string, pick: (below: number) => number): string {
  return [
    `public.${name}(who, k)`,
    `public . "${name}" (k => k, who => who)`,
    `(select public.${name}(m.person, k) from public.members m where m.person = who order by m.id limit 1)`,
  ][pick(3)]!;
}

function condition(called: readonly string[], pick: (below: number) => number): string {
  const kinds = [READS, READS, READS, HARMLESS, HARMLESS];
  const parts = [...called];
  for (let count = 1 + pick(2); count > 0; count--) {
    const kind = pick(24) === 0 ? UNSTREAMED : kinds[pick(kinds.length)]!;
    parts.push(kind[pick(kind.length)]!(pick));
  }
  const operator = ["or", "<>", "<>"][pick(3)];
  return parts
    .map((part) => `(${pick(4) === 0 ? "not " : ""}coalesce((${part}), false))`)
    .reduce((left, right) => `(${left} ${operator} ${right})`);
}

function define(name: string, called: readonly string[], pick: (below: number) => number): string {
  const head = `create function public.${name}(who text, k int) returns boolean`;
  const rights = pick(3) === 0 ? "security invoker" : "security definer";
  const path = ["", "set search_path = ''", "set search_path = shelf, public", "set search_path = public, pg_temp"][
    pick(4)
  ]!;
  const attributes = `stable ${rights} ${path}`;
  const make = () => condition(called, pick);
  switch (pick(5)) {
    case 0:
      return `${head} language sql ${attributes} return ${make()}`;
    case 1:
      return `${head} language sql ${attributes} begin atomic select ${make()}; end`;
    case 2:
      return `${head} language sql ${attributes} as $body$ select ${make()} -- the end $body$`;
    default:
      return `${head} language plpgsql ${attributes} as $body$ ${plpgsqlBody(make, pick)} $body$`;
  }
}

function plpgsqlBody(make: () => string, pick: (below: number) => number): string {
  const bodies: readonly (() => string)[] = [
    () => `begin return ${make()}; end`,
    () => `declare found_one boolean := ${make()}; begin if found_one then return ${make()}; end if; return false; end`,
    () => `declare m public.members%rowtype; begin select * into m from public.members where person = who order by id limit 1;
      return m.team > k or ${make()}; end`,
    () => `declare r record; n int := 0; begin for r in select value from public.rates where ${make()} loop
      n := n + r.value; exit when n > 100; end loop; return n > k; end`,
    () => `declare b public.badge := row(k); n int; begin n := b; return n > 3 or ${make()}; end`,
    () =>
      `begin case when ${make()} then return true; else begin return ${make()}; exception when others then return false; end; end case; end`,
    () => `<<outer>> declare n int; o public.options.value%type; begin
      select value, value + 1 into n, o from public.options where name = 'b'; return n < o and ${make()}; end outer`,
    () => `declare n int; begin for i in 1..3 loop continue when i = k; n := i; end loop;
      perform 1 from public.teams; return found or ${make()}; end`,
    () => `declare t int; n int := 0; begin foreach t in array array(select id from public.teams) loop n := n + t; end loop;
      return n > k or ${make()}; end`,
  ];
  if (pick(30) === 0)
    return "declare n int; begin execute 'select count(*) from public.bans' into n; return n > k; end";
  return bodies[pick(bodies.length)]!();
}
