import fc from "fast-check";
import pg from "pg";
import { expect, test } from "vitest";
import { copySchema } from "../../../cluster/archive/copy-schema.ts";
import type { SampleOptions } from "../../../cluster/archive/row-sample.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { propertyRuns } from "../../property-runs.ts";

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

/** Creates the database by the SQL, samples it, and gives the work both. */
async function withSample(
  sql: string,
  sample: SampleOptions,
  work: (branch: Query, source: Query) => Promise<void>,
): Promise<void> {
  const [source, branch] = [await cloneDatabase("empty"), await cloneDatabase("empty")];
  try {
    await withClient(source.ownerUrl, (client) => client.query(sql));
    expect(await copySchema(source.ownerUrl, branch.ownerUrl, { sample })).toEqual([]);
    const queryOf =
      (url: string): Query =>
      (text) =>
        withClient(url, async (client) => (await client.query(text)).rows);
    await work(queryOf(branch.ownerUrl), queryOf(source.ownerUrl));
  } finally {
    await source.drop();
    await branch.drop();
  }
}

const TENTH: SampleOptions = { share: 0.1, seed: 0 };

/** Makes Postgres check all rows of each foreign key. */
async function validateKeys(query: Query): Promise<number> {
  const keys = await query(`
    select conrelid::regclass::text as table, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
    from pg_constraint where contype = 'f' and conparentid = 0 and convalidated`);
  for (const { table, name, definition } of keys)
    await query(
      `alter table ${table} drop constraint ${name}; alter table ${table} add constraint ${name} ${definition}`,
    );
  return keys.length;
}

async function countOf(query: Query, table: string): Promise<number> {
  return Number((await query(`select count(*) from ${table}`))[0]!.count);
}

test("has the share of large tables with all rows that they refer to, and small tables whole", async () => {
  const sql = `
    create table countries (code text primary key);
    create table customers (id int primary key, country text references countries, boss int references customers);
    create schema sales;
    create table sales.orders (id int primary key, customer int not null references customers);
    insert into countries select 'C' || n from generate_series(1, 1000) n;
    insert into customers select n, 'C' || n % 1000 + 1, nullif(n / 2, 0) from generate_series(1, 20000) n;
    insert into sales.orders select n, n % 20000 + 1 from generate_series(1, 30000) n`;
  await withSample(sql, TENTH, async (branch, source) => {
    expect(await validateKeys(branch)).toBe(3);
    expect(await countOf(branch, "countries")).toBe(1000);
    const orders = await countOf(branch, "sales.orders");
    expect(orders).toBeGreaterThan(2700);
    expect(orders).toBeLessThan(3300);
    const customers = await countOf(branch, "customers");
    expect(customers).toBeGreaterThan(4000);
    expect(customers).toBeLessThan(10_000);
    expect(await source("select to_regclass('sampled_rows') as left")).toEqual([{ left: null }]);
  });
});

test("has the same rows for the same seed, also where they were moved, and others for another seed", async () => {
  const sql = `
    create table things (a int, b text, primary key (b, a));
    insert into things select n, 'x' || n from generate_series(1, 5000) n`;
  const list = "select a from things order by a";
  let first: unknown;
  await withSample(sql, TENTH, async (branch) => {
    first = await branch(list);
  });
  await withSample(`${sql}; update things set a = a where a % 3 = 0`, TENTH, async (branch) => {
    expect(await branch(list)).toEqual(first);
  });
  await withSample(sql, { ...TENTH, seed: 1 }, async (branch) => {
    expect(await branch(list)).not.toEqual(first);
  });
});

test("follows cycles, composite keys, keys of other types, partitions and long chains", async () => {
  const sql = `
    create schema other;
    create domain other.code as text;
    create table a (id bigint primary key, b_id int);
    create table b (id int primary key, a_id int references a, "odd "" name" int);
    alter table a add foreign key (b_id) references b deferrable initially deferred;
    create table chain (id int primary key, previous int references chain);
    create table other.pairs (x int, y other.code, primary key (y, x));
    create table part (region int, id int, before_region int, before_id int, x int, y text, primary key (region, id),
      foreign key (before_region, before_id) references part, foreign key (x, y) references other.pairs (x, y) match simple)
      partition by list (region);
    create table part_1 partition of part for values in (1);
    create table part_2 partition of part for values in (2, 3) partition by list (region);
    create table part_2a partition of part_2 for values in (2);
    create table part_2b partition of part_2 for values in (3);
    create table leaf (part_region int, part_id int, foreign key (part_region, part_id) references part);
    begin;
    insert into a select n, n % 4000 + 1 from generate_series(1, 4000) n;
    insert into b select n, (n * 7) % 4000 + 1, n from generate_series(1, 4000) n;
    commit;
    insert into chain select n, nullif(n - 1, 0) from generate_series(1, 20000) n;
    insert into other.pairs select n, 'y' || n % 7 from generate_series(1, 4000) n;
    insert into part select n % 3 + 1, n, case when n > 100 then (n - 100) % 3 + 1 end, case when n > 100 then n - 100 end,
      case when n % 2 = 0 then n % 4000 + 1 end, 'y' || (n % 4000 + 1) % 7 from generate_series(1, 6000) n;
    insert into leaf select n % 3 + 1, n from generate_series(1, 5000) n`;
  await withSample(sql, { share: 0.01, seed: 3 }, async (branch) => {
    expect(await validateKeys(branch)).toBe(6);
    const leaves = await countOf(branch, "leaf");
    expect(leaves).toBeGreaterThan(20);
    expect(leaves).toBeLessThan(90);
    expect(await countOf(branch, "chain")).toBeGreaterThan(10_000);
    for (const partition of ["part_1", "part_2a", "part_2b"]) {
      expect(await countOf(branch, partition)).toBeGreaterThan(20);
      expect(await countOf(branch, partition)).toBeLessThan(2000);
    }
  });
});

test("keeps views, generated and identity columns, triggers, policies and sequences as they are", async () => {
  const sql = `
    create table things (id int generated always as identity primary key, n int, twice int generated always as (n * 2) stored,
      tid text, relation text, s text);
    insert into things (n) select n from generate_series(1, 5000) n;
    create table log (text text);
    create function log() returns trigger language plpgsql as $$ begin insert into public.log values ('fired'); return new; end $$;
    create trigger log after insert on things for each row execute function log();
    alter table things enable row level security;
    alter table things force row level security;
    create policy one on things using (n = 1);
    create view seen as select count(*)::int from things;
    create materialized view counted as select count(*)::int from things`;
  await withSample(sql, TENTH, async (branch) => {
    const things = await countOf(branch, "things");
    expect(things).toBeGreaterThan(400);
    expect(things).toBeLessThan(600);
    expect(await branch("select * from seen union select * from counted")).toEqual([{ count: things }]);
    expect(await branch("select from things where twice <> n * 2")).toEqual([]);
    expect(await countOf(branch, "log")).toBe(0);
    expect(await branch("insert into things (n) values (0) returning id")).toEqual([{ id: 5001 }]);
    expect(await countOf(branch, "log")).toBe(1);
    expect(await branch("select relforcerowsecurity as forced from pg_class where relname = 'things'")).toEqual([
      { forced: true },
    ]);
  });
});

test("follows what the comments of tables say", async () => {
  const sql = `
    create table orders (id int primary key);
    create table lines (order_id int references orders, line int, product int, primary key (order_id, line));
    create table products (id int primary key);
    create table currencies (id int primary key);
    create table sessions (id int primary key);
    comment on table lines is e'@sample with order_id\\nThe lines of an order.';
    comment on table currencies is e'@name moneys\\n@sample all';
    comment on table sessions is '@sample none';
    insert into products select n from generate_series(1, 10) n;
    insert into orders select n from generate_series(1, 4000) n;
    insert into lines select n, line, line from generate_series(1, 4000) n, generate_series(1, 3) line;
    insert into currencies select n from generate_series(1, 3000) n;
    insert into sessions select n from generate_series(1, 10) n`;
  await withSample(sql, TENTH, async (branch) => {
    const orders = await countOf(branch, "orders");
    expect(orders).toBeGreaterThan(300);
    expect(await countOf(branch, "lines")).toBe(3 * orders);
    expect(await countOf(branch, "currencies")).toBe(3000);
    expect(await countOf(branch, "sessions")).toBe(0);
  });
  const ofExtension = `create table lines (id int); comment on table lines is '@sample none';
    create extension citext; alter extension citext add table lines;
    update pg_extension set extconfig = array['lines'::regclass::oid], extcondition = '{""}' where extname = 'citext'`;
  for (const wrong of ["create table lines (id int); comment on table lines is '@sample with order'", ofExtension])
    await expect(withSample(wrong, TENTH, async () => {})).rejects.toThrow(
      'The comment of "public"."lines" has a tag @sample',
    );
});

/** Tables that refer to each other and to themselves by keys of one to three columns, with and without null. */
const randomTables = fc.array(
  fc.record({
    columns: fc.integer({ min: 1, max: 3 }),
    rows: fc.integer({ min: 900, max: 2500 }),
    references: fc.array(fc.record({ table: fc.nat(5), factor: fc.integer({ min: 1, max: 99 }), nulls: fc.nat(3) }), {
      maxLength: 3,
    }),
  }),
  { minLength: 2, maxLength: 6 },
);

test("violates no foreign key of random tables", async () => {
  const property = fc.asyncProperty(randomTables, fc.nat(999), async (tables, seed) => {
    const key = (count: number, prefix = "k") => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
    const creates = tables.map(
      ({ columns, rows, references }, number) => `
        create table ${pg.escapeIdentifier(`t ${number}`)} as select ${key(columns).map((name) => `n as ${name}`)}
          ${references
            .map(({ table, factor, nulls }, index) => {
              const target = tables[table % tables.length]!;
              const value = `case when n % 4 >= ${nulls} then (n * ${factor}) % ${target.rows} + 1 end`;
              return key(target.columns, `r${index}_`)
                .map((name) => `, ${value} as ${name}`)
                .join("");
            })
            .join("")}
        from generate_series(1, ${rows}) n;
        alter table "t ${number}" add primary key (${key(columns)})`,
    );
    const keys = tables.flatMap(({ references }, number) =>
      references.map(({ table }, index) => {
        const target = table % tables.length;
        const { columns } = tables[target]!;
        return `alter table "t ${number}" add foreign key (${key(columns, `r${index}_`)}) references "t ${target}" (${key(columns)})`;
      }),
    );
    await withSample([...creates, ...keys].join(";\n"), { share: 0.05, seed }, async (branch) => {
      expect(await validateKeys(branch)).toBe(keys.length);
      for (const [number, { rows }] of tables.entries()) {
        const count = await countOf(branch, `"t ${number}"`);
        if (rows <= 1000) expect(count).toBe(rows);
        else expect(count).toBeGreaterThan(0);
      }
    });
  });
  await fc.assert(property, { numRuns: propertyRuns(50) });
});
