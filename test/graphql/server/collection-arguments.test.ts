import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";

const graphql = useFixture(() =>
  serveGraphQL({
    settings: { PGRST_DB_AGGREGATES_ENABLED: "true", GRAPHQL_MAX_COMPLEXITY: "50", GRAPHQL_MAX_DEPTH: "6" },
    before: `
      create table public.letters (id int primary key, text text, secret text, sender_id bigint references public.users);
      grant select (id, text, sender_id) on public.letters to anon, authenticated;
      grant select on public.letters to admin;
      create table public.stamps (id int primary key, price int);
      grant select (price) on public.stamps to authenticated;
      grant select on public.stamps to admin;
      insert into public.stamps values (1, 80), (2, 95);
      insert into public.users (name, email) values ('Ann', 'ann@example.org');
      insert into public.letters values (1, 'hello', 'x', 1), (2, 'bye', 'y', 1), (3, null, 'z', null)`,
  }),
);

describe("where, orderBy and aggregates", () => {
  test("select, order and count the rows of a request", async () => {
    const { data, errors } = await graphql.ask(
      `query ($where: LetterWhereInput, $orderBy: [LetterOrderByInput!]) { letters(where: $where, orderBy: $orderBy) {
        edges { node { id sender { letters(where: { text: { like: "h%" } }) { id } } } } aggregates { group { senderId } count } } }`,
      { variables: { where: { text: { isNull: false } }, orderBy: [{ text: "DESC" }] } },
    );
    expect(errors).toBeUndefined();
    const ofSender = { letters: [{ id: "1" }] };
    expect(data.letters).toEqual({
      edges: [{ node: { id: "1", sender: ofSender } }, { node: { id: "2", sender: ofSender } }],
      aggregates: [{ group: { senderId: "1" }, count: "2" }],
    });
  });

  test("have no field for a column that the role may not read", async () => {
    const filters = ['where: { secret: { eq: "x" } }', "orderBy: [{ secret: ASC }]"];
    const nested = 'where: { letters: { some: { secret: { like: "x%" } } } }';
    const documents = [
      ...filters.map((filter) => `{ letters(${filter}) { totalCount } }`),
      `{ users(${nested}) { id } }`,
      "{ letters { aggregates { max { secret } } } }",
    ];
    for (const document of documents) {
      const { errors } = await graphql.ask(document, { token: tokenFor(1) });
      expect(errors[0].extensions.code).toBe("GRAPHQL_VALIDATION_FAILED");
      expect((await graphql.ask(document, { token: tokenFor(1, { role: "admin" }) })).errors).toBeUndefined();
    }
  });

  test("count the rows of a table whose key the role may not read", async () => {
    const count = "{ stamps(where: { price: { gt: 90 } }) { __typename totalCount } }";
    const list = "{ stamps { totalCount edges { node { price } } } }";
    const token = tokenFor(1);
    const { data } = await graphql.ask(count, { token });
    expect(data).toEqual({ stamps: { __typename: "StampConnection", totalCount: 1 } });
    // The pages of a list are in the order of the key.
    expect((await graphql.ask(list, { token })).errors[0].extensions.code).toBe("PERMISSION_DENIED");
    expect((await graphql.ask(list, { token: tokenFor(1, { role: "admin" }) })).data.stamps.totalCount).toBe(2);
  });

  test("are limited in size and depth, in the document and in variables", async () => {
    const codesOf = async (query: string, variables = {}) => {
      const { errors = [] } = await graphql.ask(query, { variables });
      return errors.map(({ extensions }: { extensions: { code: string } }) => extensions.code);
    };
    const nested = (levels: number): object => (levels === 1 ? { id: { eq: 1 } } : { not: nested(levels - 1) });
    const query = "query ($where: LetterWhereInput) { letters(where: $where) { totalCount } }";
    expect(await codesOf(query, { where: nested(5) })).toEqual([]);
    expect(await codesOf(query, { where: nested(6) })).toEqual(["QUERY_TOO_DEEP"]);
    const many = (count: number) => ({ or: Array.from({ length: count }, () => ({ id: { eq: 1 } })) });
    expect(await codesOf(query, { where: many(23) })).toEqual([]);
    expect(await codesOf(query, { where: many(24) })).toEqual(["QUERY_TOO_COMPLEX"]);
    expect(await codesOf(`{ letters(where: { or: [${"{ id: { eq: 1 } }".repeat(24)}] }) { totalCount } }`)).toEqual([
      "QUERY_TOO_COMPLEX",
    ]);
  });

  test.each([
    'match: "("',
    'fts: { query: "hello", language: "none" }',
    'fts: { query: "hello", language: "eng\'lish" }',
  ])("report a value that Postgres refuses, without naming anything of the database (%s)", async (operator) => {
    const { errors } = await graphql.ask(`{ letters(where: { text: { ${operator} } }) { totalCount } }`);
    expect(errors[0].extensions.code).toBe("VALIDATION_ERROR");
    expect(errors[0].message).not.toContain("letters");
  });
});
