import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { anonymous, SEED } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

// Core reports errors in a cursor on the console, outside production.
const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
afterAll(() => complaints.mockRestore());

const generated = useGeneratedSchema({ sql: SEED, maxPageSize: 25 });
const ask: typeof generated.ask = (...question) => generated.ask(...question);
const read: typeof generated.read = (...question) => generated.read(...question);
const owner = (text: string) => generated.owner.query(text);

const PAGE = `query ($first: Int, $after: String, $last: Int, $before: String, $status: ArticleStatus) {
  articles(first: $first, after: $after, last: $last, before: $before, status: $status) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    edges { cursor node { id } }
  }
}`;

type Page = {
  totalCount: number;
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
  edges: { cursor: string; node: { id: string } }[];
};

async function page(variables: Record<string, unknown>): Promise<Page> {
  return (await read(anonymous, PAGE, variables)).articles;
}

const idsOf = ({ edges }: Page) => edges.map(({ node }) => Number(node.id));

/** The order that is promised, as SQL. */
async function allIds(): Promise<number[]> {
  const { rows } = await owner("select id from public.articles order by created_at desc, id desc");
  return rows.map(({ id }) => Number(id));
}

/** Several articles share a moment, so that the moment alone is no order. */
beforeAll(async () => {
  await owner(`
    insert into public.articles (title, content, author_id, status, created_at)
    select 'Article ' || n, '', 1, case when n % 3 = 0 then 'PUBLISHED' else 'DRAFT' end::public.article_status,
      '2026-01-01T00:00:00.000001Z'::timestamptz + (n / 4) * interval '1 microsecond'
    from generate_series(1, 55) as n
  `);
});

describe("a connection", () => {
  test("has 10 items by default, newest first", async () => {
    const result = await page({});
    expect(idsOf(result)).toEqual((await allIds()).slice(0, 10));
    expect(result.totalCount).toBe(57);
    expect(result.pageInfo).toEqual({
      hasNextPage: true,
      hasPreviousPage: false,
      startCursor: result.edges[0]!.cursor,
      endCursor: result.edges[9]!.cursor,
    });
  });

  test.each([1, 7, 10, 25])("is paged forwards in pages of %i without gaps or duplicates", async (first) => {
    const seen: number[] = [];
    let after: string | null = null;
    for (;;) {
      const result: Page = await page({ first, after });
      expect(result.totalCount).toBe(57);
      expect(result.pageInfo.hasPreviousPage).toBe(after !== null);
      seen.push(...idsOf(result));
      if (!result.pageInfo.hasNextPage) break;
      after = result.pageInfo.endCursor;
    }
    expect(seen).toEqual(await allIds());
  });

  test("is paged backwards in the same order", async () => {
    const seen: number[] = [];
    let before: string | null = null;
    for (;;) {
      const result: Page = await page({ last: 8, before });
      expect(result.pageInfo.hasNextPage).toBe(before !== null);
      seen.unshift(...idsOf(result));
      if (!result.pageInfo.hasPreviousPage) break;
      before = result.pageInfo.startCursor;
    }
    expect(seen).toEqual(await allIds());
  });

  test("counts and pages the filtered rows", async () => {
    const result = await page({ first: 25, status: "PUBLISHED" });
    const { rows } = await owner(
      "select id from public.articles where status = 'PUBLISHED' order by created_at desc, id desc",
    );
    expect(result.totalCount).toBe(rows.length);
    expect(idsOf(result)).toEqual(rows.map(({ id }) => Number(id)));
    expect(result.pageInfo.hasNextPage).toBe(false);
  });

  test("can be limited by two cursors", async () => {
    const ids = await allIds();
    const { edges } = await page({ first: 10 });
    const [after, before] = [edges[2]!.cursor, edges[7]!.cursor];
    expect(idsOf(await page({ first: 25, after, before }))).toEqual(ids.slice(3, 7));
    expect(idsOf(await page({ last: 2, after, before }))).toEqual(ids.slice(5, 7));
    expect(idsOf(await page({ first: 2, after, before }))).toEqual(ids.slice(3, 5));
  });

  test("may be empty", async () => {
    const result = await page({ first: 0 });
    expect(result).toMatchObject({ totalCount: 57, edges: [], pageInfo: { startCursor: null, endCursor: null } });
    const { endCursor } = (await page({ last: 1 })).pageInfo;
    expect(await page({ after: endCursor })).toMatchObject({
      edges: [],
      pageInfo: { hasNextPage: false, hasPreviousPage: true },
    });
  });

  test.each([26, 1000, 2_147_483_647])(
    "never exceeds the configured maximum, not even for first: %i",
    async (count) => {
      const variables = { first: count };
      const result = await page(variables);
      expect(result.edges).toHaveLength(25);
      expect(result.pageInfo.hasNextPage).toBe(true);
      expect((await page({ last: count })).edges).toHaveLength(25);
      expect(
        (await read(anonymous, `{ articles(first: ${count}) { edges { node { id } } } }`)).articles.edges,
      ).toHaveLength(25);
    },
  );

  test.each([
    { first: -1 },
    { last: -1 },
    { first: 1, last: 1 },
    { after: "" },
    { after: "no cursor" },
    { before: "bm8gY3Vyc29y" },
    { after: Buffer.from('["another order",1]').toString("base64") },
    { after: Buffer.from("{}").toString("base64") },
    { after: Buffer.from("null").toString("base64") },
  ])("refuses %j", async (variables) => {
    const { data, faults } = await ask(anonymous, PAGE, variables);
    expect(data).toBeNull();
    expect(faults).toMatchObject([{ code: "VALIDATION_ERROR", path: "articles" }]);
  });

  test("refuses the cursor of another table, and one with modified values", async () => {
    const { articleTranslations } = await read(anonymous, "{ articleTranslations { edges { cursor } } }");
    const foreign = articleTranslations.edges[0].cursor;
    expect((await ask(anonymous, PAGE, { after: foreign })).faults).toMatchObject([{ code: "VALIDATION_ERROR" }]);

    const [digest] = JSON.parse(Buffer.from((await page({ first: 1 })).edges[0]!.cursor, "base64").toString());
    for (const values of [["yesterday's news", "1"], ["2026-01-01", "x"], ["2026-01-01"], [{}, []], [null, null]]) {
      const after = Buffer.from(JSON.stringify([digest, ...values])).toString("base64");
      const { faults } = await ask(anonymous, PAGE, { after });
      if (values[0] !== null) expect(faults).toMatchObject([{ code: "VALIDATION_ERROR" }]);
    }
  });

  test("keeps its position while rows are inserted and deleted", async () => {
    const ids = await allIds();
    const { endCursor } = (await page({ first: 10 })).pageInfo;
    await owner(`
      insert into public.articles (title, content, author_id) values ('Quite new', '', 1);
      delete from public.articles where id in (${ids.slice(5, 13).join()});
    `);
    const result = await page({ first: 10, after: endCursor });
    expect(idsOf(result)).toEqual(ids.slice(13, 23));
    expect(result.pageInfo.hasPreviousPage).toBe(true);
  });

  test("returns each row that stays once while rows are inserted and deleted", async () => {
    const before = await allIds();
    const seen: number[] = [];
    let after: string | null = null;
    for (let step = 0; ; step += 1) {
      const result: Page = await page({ first: 5, after });
      seen.push(...idsOf(result));
      if (!result.pageInfo.hasNextPage) break;
      after = result.pageInfo.endCursor;
      await owner(`insert into public.articles (title, content, author_id) values ('Newer than all', '', 1)`);
      await owner(`delete from public.articles where id = ${seen[step]}`);
    }
    expect(seen).toEqual(before);
  });
});

describe("a connection sorted by a column of type", () => {
  const VALUES: Readonly<Record<string, readonly string[]>> = {
    integer: ["2", "1", "3"],
    boolean: ["true", "false", "true"],
    "double precision": ["'NaN'", "0.1", "'-Infinity'"],
    numeric: ["'NaN'", "1.10", "'Infinity'"],
    interval: ["'1 mon'", "'-1.5s'", "'30 days'"],
    time: ["'24:00'", "'00:00'", "'12:00:00.000001'"],
    timetz: ["'12:00+02'", "'12:00+00'", "'14:00+02'"],
    timestamptz: ["'infinity'", "'0044-01-01 BC'", "'1880-01-01'"],
    bytea: [String.raw`'\xff'`, "''", String.raw`'\x00'`],
    jsonb: ["'null'", `'{"a": 1}'`, "'[]'"],
    inet: ["'10.0.0.1'", "'10.0.0.0/8'", "'::1'"],
    daterange: ["'[2026-01-01,2026-02-01)'", "'empty'", "'(,)'"],
    "integer[]": ["'{1,null}'", "'{}'", "'{1}'"],
    oid: ["2", "1", "4294967295"],
  };
  const types = Object.keys(VALUES);
  const tableOf = (type: string) => `${type.replace(" ", "_").replace("[]", "_list")}_values`;

  beforeAll(async () => {
    for (const type of types) {
      const rows = VALUES[type]!.map((value, index) => `(${index + 1}, ${value})`);
      await owner(`
        create table public.${tableOf(type)} (id integer primary key, value ${type});
        insert into public.${tableOf(type)} values ${rows.join()}, (4, null), (5, null);
        grant select on public.${tableOf(type)} to anon;
        comment on table public.${tableOf(type)} is '@order value';
      `);
    }
    await generated.renew();
  });

  test.each(types)("%s, with nulls, has each row once, from either end", async (type) => {
    const { rows } = await owner(`select id::text from public.${tableOf(type)} order by value, id`);
    const field = tableOf(type).replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    const walk = async (size: "first" | "last", cursor: "after" | "before") => {
      const seen: string[] = [];
      let from: string | null = null;
      // The loop stops after one page more than there are rows.
      while (seen.length <= rows.length) {
        const source = `query ($from: String) { page: ${field}(${size}: 1, ${cursor}: $from) { edges { cursor node { id } } } }`;
        const [edge]: Page["edges"] = (await read(anonymous, source, { from })).page.edges;
        if (!edge) break;
        seen.push(edge.node.id);
        from = edge.cursor;
      }
      return seen;
    };
    const ids = rows.map(({ id }) => id);
    expect(await walk("first", "after")).toEqual(ids);
    expect(await walk("last", "before")).toEqual(ids.toReversed());
  });
});

describe("the position of a cursor", () => {
  test("is found in the index, not by counting", async () => {
    const { edges } = await page({ first: 3 });
    const { statements } = await ask(anonymous, PAGE, { first: 2, after: edges[2]!.cursor });
    const select = statements.find((text) => text.includes("order by"))!;
    const [, createdAt, id] = JSON.parse(Buffer.from(edges[2]!.cursor, "base64").toString());
    await owner("set enable_seqscan = off; set enable_sort = off");
    const { rows } = await generated.owner.query(`explain ${select}`, [createdAt, id]);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toMatch(/Index Cond: \(ROW\(created_at, id\) < ROW/);
  });
});

describe("a list", () => {
  test("has limit and offset, in the order of the key", async () => {
    expect(
      await read(anonymous, "{ users { id } some: users(limit: 1, offset: 1) { id } none: users(limit: 0) { id } }"),
    ).toEqual({
      users: [{ id: "1" }, { id: "2" }, { id: "3" }],
      some: [{ id: "2" }],
      none: [],
    });
  });

  test("of a relation has the order of its table", async () => {
    const { rows } = await owner(
      "select id from public.articles where author_id = 1 order by created_at desc, id desc limit 3",
    );
    expect(await read(anonymous, "{ user(id: 1) { articles(limit: 3) { id } } }")).toEqual({
      user: { articles: rows.map(({ id }) => ({ id })) },
    });
  });

  test("has 10 items by default and for a null limit", async () => {
    await owner(
      "insert into public.users (name, email) select 'User', n || '@example.org' from generate_series(1, 40) as n",
    );
    const query = "query ($limit: Int, $offset: Int) { users(limit: $limit, offset: $offset) { id } }";
    expect((await read(anonymous, query)).users).toHaveLength(10);
    expect((await read(anonymous, query, { limit: null, offset: null })).users).toHaveLength(10);
  });

  test("never exceeds the configured maximum", async () => {
    expect((await read(anonymous, "{ users(limit: 2147483647) { id } }")).users).toHaveLength(25);
    const { user } = await read(anonymous, "{ user(id: 1) { articles(limit: 1000) { id } } }");
    expect(user.articles).toHaveLength(25);
  });

  test("of a function's result has the same maximum", async () => {
    await owner(
      "insert into public.articles (title, content, author_id, tags) select 'Findable', '', 1, '{summer}' from generate_series(1, 30)",
    );
    expect((await read(anonymous, `{ search(keyword: "findable") { id } }`)).search).toHaveLength(25);
    const { search } = await read(anonymous, `{ search(keyword: "findable") { relatedArticles(limit: 1000) { id } } }`);
    expect(search[0].relatedArticles).toHaveLength(25);
  });

  test.each(["limit: -1", "offset: -1"])("refuses %s", async (argument) => {
    expect((await ask(anonymous, `{ users(${argument}) { id } }`)).faults).toMatchObject([
      { code: "VALIDATION_ERROR", path: "users" },
    ]);
  });
});

describe("an invalid number of rows", () => {
  const refused = async (source: string, variables?: Record<string, unknown>) => {
    const { data, faults } = await ask(anonymous, source, variables);
    return { data, faults: faults.map(({ code, path }) => [code, path]) };
  };

  test.each(["limit: -1", "limit: $given"])("is the error of its list, at any depth (%s)", async (argument) => {
    const head = argument.endsWith("$given") ? "query ($given: Int = -1) " : "";
    expect(await refused(`${head}{ user(id: 1) { name articles(${argument}) { id } } }`)).toEqual({
      data: { user: null },
      faults: [["VALIDATION_ERROR", "user.articles"]],
    });
    expect(await refused(`${head}{ user(id: 1) { articles { comments(${argument}) { id } } } }`)).toEqual({
      data: { user: null },
      faults: [["VALIDATION_ERROR", "user.articles.0.comments"]],
    });
    expect(await refused(`${head}{ users(${argument}) { id } }`)).toEqual({
      data: null,
      faults: [["VALIDATION_ERROR", "users"]],
    });
  });

  test("is not an error of the other fields of that operation", async () => {
    expect(
      await refused("query ($bad: Int) { user(id: 1) { name } other: user(id: 1) { articles(limit: $bad) { id } } }", {
        bad: -1,
      }),
    ).toEqual({
      data: { user: { name: expect.any(String) }, other: null },
      faults: [["VALIDATION_ERROR", "other.articles"]],
    });
  });
});
