import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { useService } from "../../serve.ts";
import { ANN, BOB, CALLERS } from "../callers.ts";
import { type Claims, openClient } from "./client.ts";

const SCHEMA = `
  create schema blog;
  create table blog.writers (id int primary key, name text, boss_id int references blog.writers);
  create table blog.posts (id int primary key, writer_id int references blog.writers, topic text, rating int, owner text);
  create table blog.remarks (id int primary key, post_id int references blog.posts, writer_id int references blog.writers, stars int, owner text);
  create table blog.labels (id int primary key, name text);
  create table blog.post_labels (post_id int references blog.posts, label_id int references blog.labels, primary key (post_id, label_id));
  insert into blog.writers select n, (array['Ann', 'Bob', null, 'Dora'])[n % 4 + 1], nullif(n / 2, 0) from generate_series(1, 6) n;
  insert into blog.posts select n, nullif(n % 5, 0), (array['sea', 'sky', null])[n % 3 + 1], nullif(n * 7 % 6, 4), (array['${ANN}', '${BOB}', null])[n % 3 + 1]
  from generate_series(1, 14) n;
  insert into blog.remarks select n, nullif(n * n % 11, 0), nullif(n % 7, 0), nullif(n % 6, 5), (array['${ANN}', '${BOB}'])[n % 5]
  from generate_series(1, 40) n;
  insert into blog.labels select n, 'label ' || n % 3 from generate_series(1, 5) n;
  insert into blog.post_labels select p, l from generate_series(1, 14) p, generate_series(1, 5) l where (p * l) % 4 = 1;
  create table blog.tallies (id int primary key, post_id int references blog.posts, count int);
  insert into blog.tallies values (1, 1, 10), (2, 1, 20), (3, 2, 10), (4, 2, 20), (5, 5, 20);
  alter table blog.posts enable row level security;
  alter table blog.remarks enable row level security;
  create policy shown on blog.posts for select using (owner is null or owner = auth.uid()::text or auth.role() = 'admin');
  create policy shown on blog.remarks for select using (owner is null or owner = auth.uid()::text or auth.role() = 'admin');
  grant usage on schema blog to anon, authenticated, service_role;
  grant select on all tables in schema blog to anon, authenticated, service_role;
  create policy changed on blog.posts for update using (true);
  grant update (rating) on blog.posts to anon;
`;

const database = useDatabase({ sql: SCHEMA });
const caller = useClient(database.url);
const service = useService({ database, settings: { PGRST_DB_SCHEMAS: "blog", PGRST_DB_AGGREGATES_ENABLED: "true" } });
const client = useFixture(() => openClient(service.url));

/** The rows of the statement that somebody would write, as the caller. */
async function rowsOf(statement: string, claims: Claims): Promise<unknown> {
  await caller.query("begin");
  await caller.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
    claims.role,
    JSON.stringify(claims),
  ]);
  const { rows } = await caller.query(`select coalesce(json_agg(t), '[]') as rows from (${statement}) t`);
  await caller.query("rollback");
  return rows[0].rows;
}

async function expectSame(path: string, statement: string, as: Claims): Promise<unknown[]> {
  const response = await client.ask(path, { as });
  expect({ path, status: response.status, body: response.body }).toEqual({
    path,
    status: 200,
    body: await rowsOf(statement, as),
  });
  return response.body;
}

/** The relations of a post: how to join them, and their columns. */
const RELATIONS = {
  remarks: { from: "blog.remarks r where r.post_id = p.id", alias: "r", columns: ["id", "stars", "writer_id"] },
  writers: { from: "blog.writers w where w.id = p.writer_id", alias: "w", columns: ["id", "boss_id"] },
  labels: {
    from: "blog.labels l join blog.post_labels pl on pl.label_id = l.id where pl.post_id = p.id",
    alias: "l",
    columns: ["id"],
  },
} as const;
type RelationName = keyof typeof RELATIONS;
const relationNames = fc.constantFrom<RelationName>("remarks", "writers", "labels");

/** A part of a request, and of the statement. */
type Part = { readonly url: string; readonly sql: string };

const COMPARISONS = { eq: "=", neq: "<>", gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;
const comparisons = fc.constantFrom(...(Object.keys(COMPARISONS) as (keyof typeof COMPARISONS)[]));
const smallNumbers = fc.integer({ min: 0, max: 6 });

/** `gt.5`, `not.in.(1,2)` */
const numberFilters = fc.tuple(fc.boolean(), comparisons, smallNumbers, fc.boolean()).map(([not, name, n, isList]) => {
  const url = `${not ? "not." : ""}${isList ? `in.(${n},2)` : `${name}.${n}`}`;
  const sql = (value: string) =>
    `${not ? "not " : ""}(${value} ${isList ? `in (${n}, 2)` : `${COMPARISONS[name]} ${n}`})`;
  return { url, sql };
});

const countOf = (relation: RelationName) => `(select count(*) from ${RELATIONS[relation].from})`;

/** `stars.gt.3`, `or(stars.is.null,id.eq.4)` */
const innerConditions = (relation: RelationName): fc.Arbitrary<Part> => {
  const { alias, columns } = RELATIONS[relation];
  const plain = fc.tuple(fc.constantFrom(...columns), fc.option(numberFilters)).map(([column, filter]): Part => {
    const value = `${alias}.${column}`;
    return filter
      ? { url: `${column}.${filter.url}`, sql: filter.sql(value) }
      : { url: `${column}.is.null`, sql: `${value} is null` };
  });
  const either = fc
    .tuple(plain, plain)
    .map(([a, b]): Part => ({ url: `or(${a.url},${b.url})`, sql: `(${a.sql} or ${b.sql})` }));
  return fc
    .array(fc.oneof({ weight: 3, arbitrary: plain }, either), { minLength: 1, maxLength: 2 })
    .map((parts) => ({ url: parts.map(({ url }) => url).join(), sql: parts.map(({ sql }) => sql).join(" and ") }));
};

const QUANTIFIERS = {
  any: (from: string, condition: string) => `exists (select from ${from} and (${condition}))`,
  none: (from: string, condition: string) => `not exists (select from ${from} and (${condition}))`,
  every: (from: string, condition: string) => `not exists (select from ${from} and (${condition}) is not true)`,
};
const quantified = relationNames.chain((relation) =>
  fc
    .tuple(fc.constantFrom("any", "none", "every"), fc.boolean(), innerConditions(relation))
    .map(([quantifier, not, { url, sql }]) => ({
      name: relation,
      value: `${not ? "not." : ""}${quantifier}(${url})`,
      sql: `${not ? "not " : ""}(${QUANTIFIERS[quantifier](RELATIONS[relation].from, sql)})`,
    })),
);
const counted = fc
  .tuple(relationNames, numberFilters)
  .map(([relation, { url, sql }]) => ({ name: `${relation}.count`, value: url, sql: sql(countOf(relation)) }));

/** Conditions as parameters of their own, or in a logic tree. */
const conditions = fc.array(fc.oneof(quantified, counted), { maxLength: 3 }).chain((list) =>
  fc.boolean().map((isTree): Part => {
    const all = list.map(({ sql }) => sql);
    if (!isTree || list.length === 0) {
      const url = list.map(({ name, value }) => `&${name}=${value}`).join("");
      return { url, sql: ["true", ...all].join(" and ") };
    }
    return { url: `&or=(${list.map(({ name, value }) => `${name}.${value}`).join()})`, sql: `(${all.join(" or ")})` };
  }),
);
const orders = fc
  .tuple(fc.option(relationNames), fc.constantFrom("", ".asc", ".desc"))
  .map(([relation, direction]): Part => {
    if (!relation) return { url: "id", sql: "p.id" };
    return { url: `${relation}.count${direction},id`, sql: `${countOf(relation)} ${direction.slice(1)}, p.id` };
  });

describe("random reads", () => {
  test("count related rows and ask for some, none or all of them as statements do", async () => {
    const outcomes = { none: 0, some: 0 };
    const requests = fc.record({
      where: conditions,
      order: orders,
      counted: fc.uniqueArray(relationNames),
      limit: fc.integer({ min: 1, max: 14 }),
      as: fc.constantFrom(...CALLERS),
    });
    const property = fc.asyncProperty(requests, async ({ where, order, counted: names, limit, as }) => {
      const select = ["id", ...names.map((name) => `n_${name}:${name}.count()`)];
      const outputs = ["p.id", ...names.map((name) => `${countOf(name)} as n_${name}`)];
      const path = `/posts?select=${select.join()}&order=${order.url}&limit=${limit}${where.url}`;
      const statement = `select ${outputs.join(", ")} from blog.posts p where ${where.sql} order by ${order.sql} limit ${limit}`;
      outcomes[(await expectSame(path, statement, as)).length === 0 ? "none" : "some"] += 1;
    });
    await fc.assert(property, { numRuns: propertyRuns(1_000) });
    expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
  });
});

/** `topic,id.desc`: the fields and their directions. */
const terms = (fields: readonly string[]) =>
  fc
    .uniqueArray(fc.tuple(fc.constantFrom(...fields), fc.constantFrom("", ".asc", ".desc", ".desc.nullslast")), {
      selector: ([field]) => field,
      maxLength: 2,
    })
    .map(
      (list): Part => ({
        url: list.map(([field, direction]) => `${field}${direction},`).join(""),
        sql: list.map(([field, way]) => `${field} ${way.slice(1).replace(".nullslast", " nulls last")}, `).join(""),
      }),
    );

const AGGREGATES = {
  "count()": "count(*)",
  "rating.sum()": "sum(rating)",
  "rating.count(distinct)": "count(distinct rating)",
  "writer_id.count(distinct)": "count(distinct writer_id)",
  "rating.sum(distinct)": "sum(distinct rating)",
  "rating.avg(distinct)::int": "avg(distinct rating)::int",
} as const;

describe("random groups", () => {
  test("are chosen by conditions on aggregates, and ordered by them, as statements do", async () => {
    const outcomes = { none: 0, some: 0 };
    const groups = fc.subarray(["topic", "writer_id"]);
    const aggregates = fc.subarray(Object.entries(AGGREGATES), { minLength: 1, maxLength: 3 });
    const requests = fc.tuple(groups, aggregates).chain(([by, list]) => {
      const names = list.map((_, index) => `a${index}`);
      const plain = fc.tuple(fc.constantFrom(...names), numberFilters).map(([name, { url, sql }]): Part => {
        return { url: `${name}.${url}`, sql: sql(list[Number(name.slice(1))]![1]) };
      });
      const either = fc
        .tuple(plain, plain)
        .map(([a, b]): Part => ({ url: `or(${a.url},${b.url})`, sql: `(${a.sql} or ${b.sql})` }));
      return fc.record({
        by: fc.constant(by),
        list: fc.constant(list),
        having: fc.array(fc.oneof(plain, either), { maxLength: 2 }),
        order: terms(names),
        where: conditions,
        as: fc.constantFrom(...CALLERS),
      });
    });
    const property = fc.asyncProperty(requests, async ({ by, list, having, order, where, as }) => {
      const select = [...by, ...list.map(([url], index) => `a${index}:${url}`)].join();
      const outputs = [...by, ...list.map(([, sql], index) => `${sql} as a${index}`)].join(", ");
      const chosen = having.length > 0 ? `&having=(${having.map(({ url }) => url).join()})` : "";
      const ordered = by.length > 0 ? `${order.url}${by.join()}` : order.url.replace(/,$/, "");
      const path = `/posts?select=${select}${where.url}${chosen}${ordered && `&order=${ordered}`}`;
      const grouping = by.length > 0 ? `group by ${by.join(", ")}` : "";
      const condition = having.length > 0 ? `having ${having.map(({ sql }) => sql).join(" and ")}` : "";
      const byAll = by.length > 0 ? `${order.sql}${by.join(", ")}` : order.sql.replace(/, $/, "");
      const statement = `select ${outputs} from blog.posts p where ${where.sql} ${grouping} ${condition} ${byAll && `order by ${byAll}`}`;
      outcomes[(await expectSame(path, statement, as)).length === 0 ? "none" : "some"] += 1;
    });
    await fc.assert(property, { numRuns: propertyRuns(1_000) });
    expect(Math.min(...Object.values(outcomes)), JSON.stringify(outcomes)).toBeGreaterThan(0);
  });
});

describe("random distinct rows", () => {
  test("are the first of their key, at the top and in relations, as statements do", async () => {
    const requests = fc
      .record({
        keys: fc.subarray(["topic", "writer_id", "rating"], { minLength: 1 }),
        order: terms(["topic", "writer_id", "rating"]),
        below: fc.option(
          fc.record({
            keys: fc.subarray(["stars", "writer_id"], { minLength: 1 }),
            order: terms(["stars", "writer_id"]),
          }),
        ),
        where: conditions,
        range: fc.tuple(fc.integer({ min: 1, max: 14 }), fc.nat(3)),
        as: fc.constantFrom(...CALLERS),
      })
      // A condition on the relation would concern its distinct rows.
      .filter(({ below, where }) => !(below && where.url.includes("remarks")));
    const firstRows = (from: string, keys: readonly string[], order: string) =>
      `(select * from (select t.*, row_number() over (partition by ${keys.join(", ")} order by ${order}id) as nth from (select ${from}) t) f where nth = 1)`;
    const property = fc.asyncProperty(requests, async ({ keys, order, below, where, range: [limit, offset], as }) => {
      const embedded =
        below && `,remarks(id,stars)&remarks.distinct=on(${below.keys.join()})&remarks.order=${below.order.url}id`;
      const path = `/posts?distinct=on(${keys.join()})&order=${order.url}id&limit=${limit}&offset=${offset}${where.url}&select=*${embedded ?? ""}`;
      const rows = firstRows(`p.* from blog.posts p where ${where.sql}`, keys, order.sql);
      const remarks = below
        ? `, (select coalesce(json_agg(json_build_object('id', r.id, 'stars', r.stars) order by ${below.order.sql}id), '[]')
             from ${firstRows("r.* from blog.remarks r where r.post_id = p.id", below.keys, below.order.sql)} r) as remarks`
        : "";
      const statement = `select id, writer_id, topic, rating, owner ${remarks} from ${rows} p order by ${order.sql}id limit ${limit} offset ${offset}`;
      const found = await expectSame(path, statement, as);
      if (found.length === 0) return;
      const { headers } = await client.ask(path, { as, headers: { Prefer: "count=exact" } });
      const [{ count }] = (await rowsOf(`select count(*) from ${rows} p`, as)) as [{ count: number }];
      expect(headers["content-range"]).toBe(`${offset}-${offset + found.length - 1}/${count}`);
    });
    await fc.assert(property, { numRuns: propertyRuns(1_000) });
  });
});

const bodyOf = async (path: string) => {
  const { status, body } = await client.ask(path);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return body;
};
const refusalOf = async (path: string, headers = {}) => {
  const { status, body } = await client.ask(path, { headers });
  return { status, code: body.code, message: body.message };
};

describe("the count of related rows", () => {
  test("is that of an embedded relation with its filters, whatever its range is", async () => {
    const path =
      "/posts?select=id,shown:remarks(id),shown.count()&shown.stars=gte.1&shown.limit=1&shown.order=id&id=in.(1,2,3)&order=id";
    expect(await bodyOf(path)).toEqual(
      await rowsOf(
        `select p.id, (select count(*) from blog.remarks r where r.post_id = p.id and stars >= 1) as count,
           (select coalesce(json_agg(r), '[]') from (select id from blog.remarks r where r.post_id = p.id and stars >= 1 order by id limit 1) r) as shown
         from blog.posts p where p.id in (1, 2, 3) order by p.id`,
        { role: "anon" },
      ),
    );
    expect(await bodyOf("/posts?select=id,few:remarks()&few.stars=gte.1&few.count=eq.0&order=few.count,id")).toEqual(
      await rowsOf(
        `select id from blog.posts p where not exists (select from blog.remarks r where r.post_id = p.id and stars >= 1) order by id`,
        { role: "anon" },
      ),
    );
  });

  test("groups rows, and is one column of a spread relation", async () => {
    expect(await bodyOf("/posts?select=n:remarks.count()::text,posts:count()&order=n")).toEqual(
      await rowsOf(
        `select n::text, count(*) as posts from
           (select (select count(*) from blog.remarks r where r.post_id = p.id) as n from blog.posts p) g group by n order by n::text`,
        { role: "anon" },
      ),
    );
    expect(await bodyOf("/remarks?select=id,...posts(n:labels.count())&id=in.(1,2)&order=id")).toEqual(
      await rowsOf(
        `select r.id, (select count(*) from blog.post_labels l where l.post_id = p.id) as n
         from blog.remarks r left join blog.posts p on p.id = r.post_id where r.id in (1, 2) order by r.id`,
        { role: "anon" },
      ),
    );
  });

  test("is not meant where the relation has a column of that name", async () => {
    const path = "/posts?select=id,tallies(count)&tallies.count=eq.10&tallies=not.is.null&order=id";
    expect(await bodyOf(path)).toEqual([{ id: 2, tallies: [{ count: 10 }] }]);
    expect(await refusalOf("/posts?select=id&tallies.count=eq.1")).toMatchObject({ status: 400, code: "PGRST108" });
    expect(await refusalOf("/posts?select=id&nowhere.count=eq.1")).toMatchObject({ status: 400, code: "PGRST108" });
  });

  test("chooses the rows of a write", async () => {
    const path = "/posts?remarks.count=eq.0&id=lt.9&select=id,rating&order=id";
    const response = await client.ask(path, {
      method: "PATCH",
      body: { rating: 99 },
      headers: { Prefer: "return=representation, tx=rollback" },
    });
    const ids = `select id, 99 as rating from blog.posts p where id < 9 and not exists (select from blog.remarks r where r.post_id = p.id) order by id`;
    expect(response.body).toEqual(await rowsOf(ids, { role: "anon" }));
  });

  test("is an order of pages by cursor", async () => {
    const first = "/posts?select=id&order=remarks.count.desc&limit=2&cursor=";
    const ids: number[] = [];
    for (let path: string | null = first; path !== null; ) {
      const { body, headers } = await client.ask(path);
      ids.push(...body.map(({ id }: { id: number }) => id));
      const next: string | undefined = /<\/rest\/v1([^>]*)>; rel="next"/.exec(String(headers.link))?.[1];
      path = next ?? null;
    }
    const all = (await rowsOf(
      `select id from blog.posts p order by (select count(*) from blog.remarks r where r.post_id = p.id) desc, id desc`,
      { role: "anon" },
    )) as { id: number }[];
    expect(ids).toEqual(all.map(({ id }) => id));
    expect(ids.length).toBeGreaterThan(4);
  });
});

describe("distinct rows and groups", () => {
  test("are those of every format, of spread relations and of functions that are called", async () => {
    const asText = await client.ask("/posts?select=topic,id&distinct=on(topic)&order=id.desc", {
      headers: { Accept: "text/csv" },
    });
    const rows = `select topic, max(id) as id from blog.posts group by topic order by id desc`;
    const expected = (await rowsOf(rows, { role: "anon" })) as { topic: string | null; id: number }[];
    expect(asText.text).toBe(["topic,id", ...expected.map(({ topic, id }) => `${topic ?? ""},${id}`)].join("\n"));
    expect(
      await bodyOf("/writers?select=id,...posts(topics:topic)&posts.distinct=on(topic)&posts.order=topic&id=eq.1"),
    ).toEqual(
      await rowsOf(
        `select id, (select json_agg(distinct topic order by topic) from blog.posts p where p.writer_id = w.id) as topics from blog.writers w where id = 1`,
        { role: "anon" },
      ),
    );
  });

  test("are counted and required as rows of a relation", async () => {
    expect(
      await bodyOf(
        "/posts?select=id,stars:remarks(),stars.count()&stars.distinct=on(stars)&order=stars.count.desc,id&limit=3",
      ),
    ).toEqual(
      await rowsOf(
        `select p.id, (select count(*) from (select distinct stars from blog.remarks r where r.post_id = p.id) s) as count
         from blog.posts p order by 2 desc, 1 limit 3`,
        { role: "anon" },
      ),
    );
    expect(
      await bodyOf(
        "/posts?select=id,remarks!inner(stars,n:count())&remarks.having=(n.gt.1)&remarks.order=stars&order=id",
      ),
    ).toEqual(
      await rowsOf(
        `select id, (select json_agg(g order by stars) from (select stars, count(*) as n from blog.remarks r where r.post_id = p.id group by stars having count(*) > 1) g) as remarks
         from blog.posts p where exists (select from blog.remarks r where r.post_id = p.id group by stars having count(*) > 1) order by id`,
        { role: "anon" },
      ),
    );
  });

  test("are no meaning of filters on columns of these names", async () => {
    expect(await refusalOf("/posts?distinct=eq.on(topic)")).toMatchObject({
      code: "42703",
      message: "column posts.distinct does not exist",
    });
    expect(await refusalOf("/posts?having=eq.(topic)")).toMatchObject({
      code: "42703",
      message: "column posts.having does not exist",
    });
  });
});

describe("refusals of the read grammar", () => {
  test.each([
    ["/posts?distinct=on()", '"failed to parse distinct (on())" (line 1, column 4)'],
    ["/posts?distinct=on(topic,)", '"failed to parse distinct (on(topic,))" (line 1, column 10)'],
    ["/posts?distinct=on(topic)x", '"failed to parse distinct (on(topic)x)" (line 1, column 10)'],
    ["/posts?select=count()&having=(count.gt)", '"failed to parse logic tree ((count.gt))" (line 1, column 13)'],
    ["/posts?remarks=any(stars.gt.3", '"failed to parse filter (any(stars.gt.3)" (line 1, column 15)'],
    ["/posts?remarks=any()", '"failed to parse filter (any())" (line 1, column 5)'],
    ["/posts?remarks=every(stars)", '"failed to parse filter (every(stars))" (line 1, column 12)'],
    ["/posts?remarks=some(stars.gt.3)", '"failed to parse filter (some(stars.gt.3))" (line 1, column 1)'],
    ["/posts?order=remarks.count.down", '"failed to parse order (remarks.count.down)" (line 1, column 15)'],
    ["/posts?select=stars.sum(all)", '"failed to parse select parameter (stars.sum(all))" (line 1, column 10)'],
  ])("%s", async (path, message) => {
    expect(await refusalOf(path)).toEqual({ status: 400, code: "PGRST100", message });
  });

  test.each([
    ["/posts?select=topic,count()&having=(total.gt.1)", "PGRST189", "'total' in having is not a selected column"],
    [
      "/posts?select=topic,count()&having=(remarks.any(id.eq.1))",
      "PGRST189",
      "'remarks' in having is not a selected column",
    ],
    ["/posts?select=topic&having=(topic.eq.sea)", "PGRST189", "'having' needs an aggregate in 'select'"],
    ["/posts?select=count()&distinct=on(topic)", "PGRST188", "'distinct' is not possible here"],
    ["/posts?select=id&distinct=on(topic)&limit=1&cursor=", "PGRST192", "A cursor is not possible here"],
    ["/posts?select=id&distinct=on(nothing)", "42703", "column posts.nothing does not exist"],
    ["/posts?select=id&order=nothing", "42703", "column posts.nothing does not exist"],
  ])("%s", async (path, code, message) => {
    expect(await refusalOf(path)).toEqual({ status: 400, code, message });
  });

  test("name a relation that does not exist", async () => {
    expect(await refusalOf("/posts?nowhere=any(id.eq.1)")).toMatchObject({ status: 400, code: "PGRST200" });
    expect(await refusalOf("/posts?order=nowhere.count")).toMatchObject({ status: 400, code: "PGRST200" });
    expect(await refusalOf("/posts?select=nowhere.count()")).toMatchObject({ status: 400, code: "42703" });
    expect(await refusalOf("/posts?remarks=any(count.eq.1)")).toMatchObject({ status: 400, code: "42803" });
  });
});
