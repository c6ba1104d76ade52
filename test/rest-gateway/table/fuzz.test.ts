import fc from "fast-check";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { connect } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { openClient, type TestResponse } from "./client.ts";
import { ask, type Case } from "./differential/case.ts";
import { calling } from "./differential/cases/generated/calls.ts";
import { mutilated, reading } from "./differential/cases/generated/reads.ts";
import { deleting, inserting, updating, upserting } from "./differential/cases/generated/writes.ts";
import { openFixture } from "./differential/fixture.ts";

const fixture = useFixture(openFixture);
const owner = useFixture(() => connect(fixture.ownerUrl));
const service = useFixture(() =>
  serve(fixture, {
    PGRST_DB_SCHEMAS: "api,other",
    PGRST_DB_EXTRA_SEARCH_PATH: "tools",
    PGRST_DB_AGGREGATES_ENABLED: "true",
    PGRST_DB_PLAN_ENABLED: "true",
    PGRST_DB_TX_END: "rollback",
  }),
);
const client = useFixture(() => openClient(service.url, { connections: 8 }));

const valid = fc.oneof(
  { weight: 4, arbitrary: reading },
  { weight: 2, arbitrary: calling },
  inserting,
  upserting,
  updating,
  deleting,
);

const FRAGMENTS = fc.constantFrom(
  ..."()[]{}\"'\\.,:;!*-><=&?%+/$#@~|^ \t",
  ..."-> ->> :: ... () (any) not. and( or( in.( is. eq. fts( null %00 %FF %C3%A9 é 名 😀 99999999999 1e400 .sum() !inner!".split(
    " ",
  ),
  ..."&select= &order= &limit= &offset= &columns= &on_conflict= &cursor= &or=( &id= works. artists( *".split(" "),
);

type Mutation = { readonly place: number; readonly length: number; readonly text: string };
const mutation: fc.Arbitrary<Mutation> = fc.record({
  place: fc.nat(),
  length: fc.constantFrom(0, 0, 1, 1, 3, 20),
  text: fc.oneof(FRAGMENTS, fc.constant(""), fc.string({ unit: "grapheme", maxLength: 3 })),
});

function mutated(text: string, { place, length, text: inserted }: Mutation): string {
  const at = place % (text.length + 1);
  return text.slice(0, at) + inserted + text.slice(at + length);
}

const HEADERS = {
  Prefer: [
    "count=exact",
    "count=planned",
    "count=estimated",
    "return=representation",
    "return=headers-only",
    "handling=strict, max-affected=1",
    "handling=strict, nonsense",
    "tx=commit",
    "timezone=Asia/Tokyo",
    "missing=default, resolution=merge-duplicates",
  ],
  Accept: [
    "text/csv",
    "application/vnd.pgrst.object+json",
    "application/vnd.pgrst.object+json;nulls=stripped",
    "application/vnd.pgrst.array+json;nulls=stripped",
    "application/vnd.pgrst.plan+json; options=verbose",
    'application/vnd.pgrst.plan+text; for="text/csv"',
    "application/geo+json",
    "image/png, */*;q=0.1",
    "text/html",
    ";;;",
  ],
  "Content-Type": [
    "text/csv",
    "application/x-www-form-urlencoded",
    "text/plain",
    "application/octet-stream",
    "text/xml",
    "a/b",
  ],
  "Accept-Profile": ["api", "other", "private", ""],
  "Content-Profile": ["api", "other", "private", ""],
  Range: ["0-1", "1-", "5-2", "-1", "x", "0-99999999999999999999"],
} as const;
const headers = fc
  .subarray(Object.entries(HEADERS), { maxLength: 2 })
  .chain((chosen) =>
    fc.record(Object.fromEntries(chosen.map(([name, values]) => [name, fc.constantFrom<string>(...values)]))),
  );

/** A request as a program would make it, then as one would that has a fault or two. */
const broken: fc.Arbitrary<Case> = fc
  .record({
    asked: valid,
    method: fc.option(fc.constantFrom("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"), {
      nil: null,
      freq: 8,
    }),
    path: fc.array(mutation, { maxLength: 2 }),
    body: fc.array(mutation, { maxLength: 2 }),
    headers,
  })
  .map(({ asked: request, method, path, body, headers }) => {
    return {
      ...request,
      method: method ?? request.method,
      path: `/${path.reduce(mutated, request.path.slice(1))}`,
      body: request.body === null ? null : body.reduce(mutated, String(request.body)),
      headers: { ...request.headers, ...headers },
    };
  });

const NESTED_TABLES = [
  "works",
  "artists",
  "people",
  "exhibitions",
  "exhibits",
  "placements",
  "labels",
  "rooms",
  "keyed",
  "tours",
];
const NESTED_KEYS = fc.constantFrom(
  ...NESTED_TABLES,
  ..."id title name body artist_id boss_id work_id curator_id room_floor floor number details tags mood price code".split(
    " ",
  ),
  ..."countries people!boss_id works!artist_id exhibitions_curator_fkey people!exhibitions_deputy_fkey".split(" "),
  ..."__proto__ constructor works! !x a/b é row link_1 ".split(" "),
);
const { rows: nestedRows } = fc.letrec<{ row: object; rows: unknown }>((tie) => ({
  row: fc.dictionary(
    NESTED_KEYS,
    fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      { weight: 3, arbitrary: fc.oneof(fc.nat(1_000), fc.constantFrom("a", "", null, true, "2024-01-01")) },
      { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
      { weight: 3, arbitrary: tie("row") },
      { weight: 3, arbitrary: tie("rows") },
    ),
    { maxKeys: 5 },
  ),
  rows: fc.array(tie("row"), { maxLength: 3 }),
}));

const nested: fc.Arbitrary<Case> = fc
  .record({
    table: fc.constantFrom(...NESTED_TABLES),
    rows: nestedRows,
    query: fc.constantFrom("", "?select=*", "?columns=title,works", "?select=id,works(*)", "?select=count()"),
    prefer: fc.subarray(["return=representation", "missing=default", "count=exact", "return=headers-only"]),
    text: fc.array(mutation, { maxLength: 1 }),
  })
  .map(({ table, rows, query, prefer, text }) => {
    const Prefer = ["nested=insert", ...prefer].join(", ");
    const body = text.reduce(mutated, JSON.stringify(rows));
    const headers = { Prefer, "Content-Type": "application/json" };
    return { ...ask("POST", `/${table}${query}`, body), headers };
  });

function expectSound({ method, path, headers, body }: Case, result: TestResponse): void {
  const context = `${method} ${path} ${JSON.stringify(headers)} ${body}\n${result.status} ${result.text.slice(0, 500)}`;
  // Two rows of an upsert with one key: PostgREST has that as a fault of the server.
  const isTwice = result.status === 500 && result.body.code === "21000" && /a second time/.test(result.body.message);
  expect(result.status < 500 || isTwice, context).toBe(true);
  if (result.status >= 300 && result.text !== "") {
    expect(result.headers["content-type"], context).toBe("application/json; charset=utf-8");
    expect(Object.keys(result.body).sort(), context).toEqual(["code", "details", "hint", "message"]);
    expect(result.body, context).toMatchObject({ code: expect.any(String), message: expect.any(String) });
    // No statement of ours is one that Postgres cannot read.
    expect(result.body.code, context).not.toBe("42601");
  }
  if (method === "HEAD") expect(result.text, context).toBe("");
}

/** Sends several at a time, like clients. */
function expectSoundAnswers(
  cases: fc.Arbitrary<Case>,
  runs: number,
  check: (request: Case, result: TestResponse) => void = expectSound,
): Promise<void> {
  const crowd = fc.array(cases, { minLength: 16, maxLength: 16 });
  return fc.assert(
    fc.asyncProperty(crowd, async (together) => {
      const answers = await Promise.all(
        together.map(({ path, method, headers, body }) => client.ask(path, { method, headers, body })),
      );
      for (const [index, result] of answers.entries()) check(together[index]!, result);
    }),
    { numRuns: propertyRuns(runs / 16) },
  );
}

describe("every request gets a response or an error", () => {
  test("if it is valid", () =>
    expectSoundAnswers(valid, 1_200, (request, result) => {
      expectSound(request, result);
      // A page may begin behind the last row.
      const isRead = request.method === "GET" && !request.path.startsWith("/rpc/");
      if (isRead) expect([200, 206, 416], result.text).toContain(result.status);
    }));
  test("if a character of its URL is wrong", () => expectSoundAnswers(mutilated, 800));
  test("if its URL, its body, its headers or its method are invalid", () => expectSoundAnswers(broken, 3_200));
  test("if it inserts nested rows", () => expectSoundAnswers(nested, 3_200));
  test("if it is random words instead of a request", () =>
    expectSoundAnswers(
      fc
        .tuple(
          fc.constantFrom("works", "artists", "rpc/add", "rpc/all_works", "numbers", ""),
          fc.array(FRAGMENTS, { maxLength: 12 }),
        )
        .map(([name, words]) => ask("GET", `/${name}?${words.join("")}`, null)),
      1_200,
    ));

  test("and nothing has changed", async () => {
    const fresh = await openFixture();
    const other = new pg.Client({ connectionString: fresh.ownerUrl });
    await other.connect();
    const content =
      "select string_agg(md5(t::text), '' order by t::text) from (select w::text from api.works w union all select i::text from api.items i union all select k::text from api.keyed k union all select l::text from api.labels l) t";
    expect((await owner.query(content)).rows).toEqual((await other.query(content)).rows);
    await other.end();
    await fresh.drop();
  });
});
