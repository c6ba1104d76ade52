import type { StatementVerdict } from "../../migrate/statement-verdict.ts";

/** The tables `big` and `loose` have as many rows as count as many. */
export const CORPUS_SCHEMA = `
  create table parents (id int primary key, note text);
  insert into parents select i from generate_series(1, 100) i;
  create table big (id int primary key, a int, b text, c varchar(10), d int not null default 0, parent int, n int);
  insert into big select i, i, 'b', 'c', i, 1 + i % 100, i from generate_series(1, 10000) i;
  create index big_a on big (a);
  create unique index big_d on big (d);
  alter table big add constraint big_b_check check (b <> '') not valid;
  alter table big add constraint big_parent_fkey foreign key (parent) references parents not valid;
  alter table big add constraint big_n_check check (n is not null);
  create function changed() returns trigger language plpgsql as 'begin return new; end';
  create function changed_too() returns trigger language plpgsql as 'begin return new; end';
  create trigger big_trigger before update on big for each row execute function changed();
  create trigger big_other before update on big for each row execute function changed_too();
  create rule big_rule as on delete to big where old.id < 0 do instead nothing;
  create policy big_policy on big using (true);
  create table tiny (id int, x int);
  insert into tiny values (1, 1);
  create table leaf (id int primary key);
  create table child () inherits (parents);
  create view seen as select id, d from big;
  create materialized view kept as select id, d from big;
  create unique index kept_id on kept (id);
  create sequence numbers;
  create type mood as enum ('good');
  create type size as enum ('small');
  create table sized (id int, size size);
  create domain positive as int;
  create table counted (id int, n positive);
  insert into counted select i, i from generate_series(1, 10000) i;
  create domain unused as int;
  create function unused() returns int language sql as 'select 1';
  create schema other;
  create table other.thing (id int);
  create table parted (id int) partition by range (id);
  create table parted_1 partition of parted for values from (1) to (100);
  create table parted_d (id int) partition by range (id);
  create table parted_rest partition of parted_d default;
  insert into parted_d select i from generate_series(1, 10000) i;
  create table loose (id int);
  insert into loose select i from generate_series(20001, 30000) i;
  create table bounded (id int not null check (id >= 30001 and id < 40001));
  insert into bounded select i from generate_series(30001, 40000) i;
  create publication news for table tiny;
  analyze`;

/** The strongest mode of a lock that others wait for. */
type LockClass = "none" | "ShareLock" | "ShareRowExclusiveLock" | "ExclusiveLock" | "AccessExclusiveLock";

export type CorpusPart = readonly [
  lock: LockClass,
  verdict: StatementVerdict["verdict"],
  statements: readonly string[],
];

export const CORPUS: readonly CorpusPart[] = [
  [
    "none",
    "safe",
    [
      "create table made (id int)",
      "create table made (like big including all)",
      "create table made as select * from big",
      "create table made () inherits (big)",
      "create view made as select * from big",
      "create materialized view made as select * from big",
      "create sequence made",
      "create type made as enum ('a')",
      "create type made as (a int)",
      "create domain made as int check (value > 0)",
      "create function made() returns int language sql as 'select 1'",
      "create or replace function unused() returns int language sql as 'select 2'",
      "create aggregate made (int) (sfunc = int4pl, stype = int)",
      "create schema made",
      "create statistics made on a, d from big",
      "create publication made for table big",
      "alter publication news add table big",
      "comment on table big is 'x'",
      "comment on column big.a is 'x'",
      "comment on index big_a is 'x'",
      "comment on constraint big_b_check on big is 'x'",
      "grant select on big to public",
      "grant select (a) on big to public",
      "revoke all on big from public",
      "alter default privileges grant select on tables to public",
      "analyze big",
      "alter table big set (fillfactor = 70)",
      "alter table big set (autovacuum_enabled = false)",
      "alter table big reset (fillfactor)",
      "alter table big alter column a set statistics 100",
      "alter table big alter column a set (n_distinct = 5)",
      "alter table big cluster on big_pkey",
      "alter table big set without cluster",
      "alter table big validate constraint big_b_check",
      "alter table big validate constraint big_parent_fkey",
      "alter index big_a rename to big_b",
      "alter index big_a set (fillfactor = 70)",
      "alter type mood add value 'bad'",
      "alter type mood rename value 'good' to 'fine'",
      "alter type mood rename to feeling",
      "alter function unused() rename to used",
      "alter domain unused set default 1",
      "alter schema other rename to another",
      "drop function unused()",
      "drop type mood",
      "drop domain unused",
      "drop publication news",
      "select count(*) from big",
      "insert into big (id, n) values (0, 0)",
      "insert into leaf select i from generate_series(1, 20000) i",
      "do 'begin perform 1; end'",
      "set local work_mem = '8MB'",
      "lock table big in row exclusive mode",
      "lock table big in share update exclusive mode",
      "select nextval('numbers')",
    ],
  ],
  [
    "none",
    "holds writes",
    [
      "update big set b = 'x'",
      "delete from big",
      "with gone as (delete from counted returning 1) select count(*) from gone",
      "merge into counted using big on counted.id = big.id when matched then update set n = 1",
    ],
  ],
  [
    "none",
    "brief",
    [
      "select * from big where id = 1 for update",
      "select * from big where id < 10 for share",
      "update big set a = 0 where id < 10",
      "delete from big where id = 1",
    ],
  ],
  ["ExclusiveLock", "safe", ["refresh materialized view concurrently kept"]],
  // Nobody writes to a materialized view.
  ["ShareLock", "safe", ["create index on kept (d)"]],
  ["ExclusiveLock", "brief", ["lock table big in exclusive mode"]],
  [
    "ShareLock",
    "brief",
    [
      "lock table big in share mode",
      "create index on tiny (x)",
      "create unique index on tiny (x)",
      "create index on parted (id)",
      "create index on only parted_d (id)",
    ],
  ],
  [
    "ShareRowExclusiveLock",
    "brief",
    [
      "lock table big in share row exclusive mode",
      "create trigger made after insert on big for each row execute function changed()",
      "create or replace trigger big_trigger after update on big for each row execute function changed()",
      "create constraint trigger made after insert on big deferrable for each row execute function changed()",
      "alter table big disable trigger big_trigger",
      "alter table big enable trigger big_trigger",
      "alter table big disable trigger all",
      "alter table big enable always trigger big_trigger",
      "alter table big add constraint made foreign key (a) references big not valid",
      "alter table big add constraint made foreign key (parent) references parents (id) on delete cascade not valid",
      "alter table tiny add constraint made foreign key (x) references parents",
      "create table made (parent int references parents)",
      "create table made (parent int references big)",
      "alter sequence numbers restart with 5",
      "alter sequence numbers increment by 2",
      "alter sequence numbers cache 10",
      "alter sequence numbers owned by tiny.x",
    ],
  ],
  [
    "AccessExclusiveLock",
    "brief",
    [
      "lock table big",
      "alter table big add column e int",
      "alter table big add column e int default 5",
      "alter table big add column e text not null default ''",
      "alter table big add column e timestamptz default now()",
      "alter table big add column if not exists a int",
      "alter table big drop column b",
      "alter table big drop column if exists nothing",
      "alter table big rename column b to e",
      "alter table big rename to large",
      "alter table big alter column d drop not null",
      "alter table big alter column n set not null",
      "alter table big alter column a set default 1",
      "alter table big alter column d drop default",
      "alter table big alter column id add generated by default as identity",
      "alter table big alter column b set storage external",
      "alter table big alter column b set compression pglz",
      "alter table big alter column c type varchar(20)",
      "alter table big alter column c type text",
      "alter table big add constraint made check (a > 0) not valid",
      "alter table big add constraint made unique using index big_d",
      "alter table big drop constraint big_b_check",
      "alter table big drop constraint big_parent_fkey",
      "alter table big drop constraint big_pkey",
      "alter table big rename constraint big_b_check to made",
      "alter table big alter constraint big_parent_fkey deferrable",
      "alter table big enable row level security",
      "alter table big force row level security",
      "alter table big disable row level security",
      "create policy made on big using (true)",
      "alter policy big_policy on big using (false)",
      "alter policy big_policy on big rename to made",
      "drop policy big_policy on big",
      "alter table big set schema other",
      "alter table big owner to current_user",
      "alter table big replica identity full",
      "alter table big replica identity using index big_d",
      "alter table big disable rule big_rule",
      "create rule made as on update to tiny do also nothing",
      "drop rule big_rule on big",
      "drop trigger big_trigger on big",
      "drop function changed_too() cascade",
      "alter trigger big_trigger on big rename to made",
      "drop table leaf",
      "drop table big cascade",
      "drop table if exists leaf, tiny",
      "drop schema other cascade",
      "truncate leaf",
      "truncate big",
      "truncate tiny restart identity",
      "drop index big_a",
      "drop index if exists big_d",
      "alter table child no inherit parents",
      "create or replace view seen as select id, d from big where true",
      "alter view seen rename to looked",
      "alter view seen set (security_invoker = true)",
      "drop view seen",
      "alter materialized view kept rename to held",
      "drop materialized view kept",
      "drop sequence numbers",
      "alter sequence numbers rename to made",
      "drop type size cascade",
      "alter table parted detach partition parted_1",
      "create table parted_9 partition of parted for values from (900) to (1000)",
      "alter table parted attach partition bounded for values from (30001) to (40001)",
      "alter table tiny alter column x type bigint",
      "alter table tiny add check (x > 0)",
      "alter table tiny add unique (x)",
      "alter table tiny add primary key (id)",
      "alter table tiny alter column x set not null",
      "alter table tiny add column e float default random()",
      "alter table tiny add column e int generated always as (x * 2) stored",
      "alter table leaf set unlogged",
      "reindex table parents",
      "do 'begin alter table big add column e int; end'",
    ],
  ],
  [
    "ShareLock",
    "holds writes",
    [
      "create index on big (b)",
      "create index if not exists made on big (b)",
      "create unique index on big (id, a)",
      "create index on big using hash (a)",
      "create index on big using brin (a)",
      "create index on big (lower(b))",
      "create index on big (a) where b = 'b'",
      "create index on big (a) include (b)",
      "create index on parted_d (id)",
      "do 'begin create index on big (b); end'",
    ],
  ],
  [
    "ShareRowExclusiveLock",
    "holds writes",
    [
      "alter table big add constraint made foreign key (parent) references parents",
      "alter table big add foreign key (a) references big",
      "alter table big add constraint made foreign key (parent) references parents on delete set null",
    ],
  ],
  [
    "AccessExclusiveLock",
    "holds reads",
    [
      "alter table big add constraint made check (a > 0)",
      "alter table big add check (a > 0), add check (d > 0)",
      "alter table big add column e int check (e > 0)",
      "alter table big alter column a set not null",
      "alter table big add unique (a)",
      "alter table big add constraint made unique (id, d)",
      "alter table big add exclude using btree (a with =)",
      "alter table loose add primary key (id)",
      "alter table parted attach partition loose for values from (20001) to (30001)",
      "create table parted_x partition of parted_d for values from (50000) to (60000)",
      "reindex table big",
      "reindex index big_a",
      "do 'begin lock table tiny; perform count(*) from big; end'",
    ],
  ],
  [
    "AccessExclusiveLock",
    "rewrites",
    [
      "alter table big alter column a type bigint",
      "alter table big alter column a type text",
      "alter table big alter column a type numeric using a / 2",
      "alter table big alter column c type varchar(5)",
      "alter table big alter column a set data type bigint, add column e int",
      "alter table big add column e float default random()",
      "alter table big add column e timestamptz default clock_timestamp()",
      "alter table big add column e uuid not null default gen_random_uuid()",
      "alter table big add column e serial",
      "alter table big add column e int generated always as identity",
      "alter table big add column e int generated always as (a * 2) stored",
      "alter table big set unlogged",
      "cluster big using big_pkey",
      "refresh materialized view kept",
    ],
  ],
];

/** Divides a change by a key, so that each batch reads no more rows than it changes. */
function batches(change: string, condition = (from: number, to: number) => `id between ${from} and ${to}`): string[] {
  return [1, 2001, 4001, 6001, 8001].map((from) => `${change} where ${condition(from, from + 1999)}`);
}

/** A safe form of each kind of statement that holds others for long. Each step is a migration; `!`: without a transaction. */
export const SAFE_FORMS: readonly (readonly [unsafe: string, steps: readonly string[]])[] = [
  ["create index on big (b)", ["!create index concurrently if not exists safe_b on big (b)"]],
  ["drop index safe_b", ["!drop index concurrently safe_b"]],
  ["reindex table big", ["!reindex table concurrently big"]],
  ["reindex index big_a", ["!reindex index concurrently big_a"]],
  ["refresh materialized view kept", ["!refresh materialized view concurrently kept"]],
  ["vacuum full big", ["!vacuum big"]],
  [
    "alter table big add constraint safe_check check (a > 0)",
    [
      "alter table big add constraint safe_check check (a > 0) not valid",
      "alter table big validate constraint safe_check",
    ],
  ],
  [
    "alter table big add constraint safe_fkey foreign key (parent) references parents",
    [
      "alter table big add constraint safe_fkey foreign key (parent) references parents not valid",
      "alter table big validate constraint safe_fkey",
    ],
  ],
  [
    "alter table big alter column a set not null",
    [
      "alter table big add constraint safe_a check (a is not null) not valid",
      "alter table big validate constraint safe_a",
      "alter table big alter column a set not null",
      "alter table big drop constraint safe_a",
    ],
  ],
  [
    "alter table big add constraint safe_unique unique (id, d)",
    [
      "!create unique index concurrently safe_unique on big (id, d)",
      "alter table big add constraint safe_unique unique using index safe_unique",
    ],
  ],
  [
    "alter table loose add primary key (id)",
    [
      "alter table loose add constraint safe_id check (id is not null) not valid",
      "alter table loose validate constraint safe_id",
      "alter table loose alter column id set not null",
      "!create unique index concurrently loose_id on loose (id)",
      "alter table loose add primary key using index loose_id",
    ],
  ],
  [
    "alter table big add column e float default random()",
    [
      "alter table big add column e float",
      "alter table big alter column e set default random()",
      ...batches("update big set e = random()"),
    ],
  ],
  ["update big set b = 'x'", batches("update big set b = 'x'")],
  [
    "delete from counted",
    ["!create index concurrently if not exists counted_id on counted (id)", ...batches("delete from counted")],
  ],
  [
    "alter table big alter column parent type bigint",
    [
      "alter table big add column parent_id bigint",
      "create trigger safe_parent before insert or update on big for each row execute function changed()",
      ...batches("update big set parent_id = parent"),
      "alter table big drop column parent",
    ],
  ],
  [
    "alter table loose add column key bigint generated always as identity unique",
    [
      "alter table loose add column key bigint",
      "!create index concurrently if not exists loose_id on loose (id)",
      ...batches("update loose set key = id", (from, to) => `id between ${20_000 + from} and ${20_000 + to}`),
      "alter table loose add constraint safe_key check (key is not null) not valid",
      "alter table loose validate constraint safe_key",
      "alter table loose alter column key set not null",
      "alter table loose alter column key add generated always as identity",
      "!create unique index concurrently loose_key on loose (key)",
      "alter table loose add constraint loose_key unique using index loose_key",
    ],
  ],
  [
    "alter table loose add exclude using btree (id with =)",
    [
      "create table loose_too (id int not null, exclude using btree (id with =))",
      "insert into loose_too select id from loose where id <= 25000",
      "insert into loose_too select id from loose where id > 25000",
      "alter table loose rename to loose_old",
      "alter table loose_too rename to loose",
    ],
  ],
  [
    "alter table parted attach partition loose for values from (20001) to (30001)",
    [
      "alter table loose add constraint safe_bounds check (id >= 20001 and id < 30001) not valid",
      "alter table loose validate constraint safe_bounds",
      "alter table parted attach partition loose for values from (20001) to (30001)",
    ],
  ],
  [
    "create index on parted_d (id)",
    [
      "create index safe_parted on only parted_d (id)",
      "!create index concurrently safe_rest on parted_rest (id)",
      "alter index safe_parted attach partition safe_rest",
    ],
  ],
  [
    "alter domain positive add constraint safe_positive check (value > 0)",
    [
      "alter table counted add constraint safe_n check (n > 0) not valid",
      "alter table counted validate constraint safe_n",
    ],
  ],
  ["do 'begin update big set a = 0; end'", batches("update big set a = 1").map((batch) => `do 'begin ${batch}; end'`)],
  [
    "create table parted_x partition of parted_d for values from (50000) to (60000)",
    [
      "alter table parted_rest add constraint safe_rest check (not (id is not null and id >= 50000 and id < 60000)) not valid",
      "alter table parted_rest validate constraint safe_rest",
      "create table parted_x partition of parted_d for values from (50000) to (60000)",
    ],
  ],
];
