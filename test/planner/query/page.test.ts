import { describe, expect, test } from "vitest";
import type {
  CallIntent,
  CursorPosition,
  FieldReference,
  OrderTerm,
  ReadIntent,
} from "../../../planner/intent/intent.ts";
import { useFixture } from "../../fixture.ts";
import { answering } from "../expected.ts";
import { type FixtureOptions, openFixture } from "../fixture-database.ts";
import { call, column, columns, compare, everyColumn, field, read, relation, term } from "../intents.ts";

const fixture = useFixture(() =>
  openFixture(`
    create table api.paints (id int primary key, hue text not null, price numeric, year int not null);
    insert into api.paints
      select i, pg_catalog.chr(97 + i % 5), case when i % 4 > 0 then i % 3 + 0.5 end, 2000 + i % 7 from pg_catalog.generate_series(1, 40) i;
    create function api.paint_label(p api.paints) returns text stable language sql return p.hue || p.year;
    alter function api.paint_label(api.paints) rename to label;
    create view api.hues as select hue, pg_catalog.count(*) as paints from api.paints group by hue;
    create function api.paints_since(since int) returns setof api.paints stable language sql
      begin atomic select * from api.paints where year >= since; end;
    grant select on all tables in schema api to anon;
  `),
);

type Paged = ReadIntent | CallIntent;

/** The page behind a row that was ordered by these values. */
function behind<T extends Paged>(intent: T, values: CursorPosition["values"]): T {
  const { order } = fixture.plan({ ...intent, page: { kind: "first" } }).keyset!;
  return { ...intent, page: { kind: "after", position: { order, values } } };
}

type Row = Record<string, unknown>;

/** The rows of all pages, from the first one on. */
async function walk(intent: Paged, options?: FixtureOptions): Promise<Row[]> {
  const rows: Row[] = [];
  let request: Paged = { ...intent, page: { kind: "first" } };
  for (;;) {
    const { body, rowCount: page, position: place } = await fixture.run(request, options);
    rows.push(...(JSON.parse(body!) as Row[]));
    if (!place) return rows;
    expect(place, JSON.stringify(request)).not.toEqual([]);
    expect(page).toBe(intent.selection.ranges[0]!.value.limit);
    request = behind(intent, place);
  }
}

/** Reads the rows in one piece, without pages. */
async function whole(intent: Paged): Promise<Row[]> {
  return (await fixture.rows({ ...intent, selection: { ...intent.selection, ranges: [] } })) as Row[];
}

const two = { offset: 0, limit: 2 };
const three = { offset: 0, limit: 3 };
const down = (name: string, nulls: "first" | "last" | null = null) => term(name, { direction: "desc", nulls });

const place = (values: readonly string[], order: string, limit: number) => {
  const names = values.map((_, index) => `c${index + 1}`);
  const rowAt = (offset: number) =>
    `(select ${values.map((value, index) => `${value} as "c${index + 1}"`).join(", ")} ` +
    `from "result" as "paints" order by ${order} limit 1 offset ${offset})`;
  const tuple = (row: string) => `(${names.map((name) => `"${row}"."${name}"`).join(", ")})`;
  const texts = names.map((name) => `"last"."${name}"::pg_catalog.text`).join(", ");
  return (
    `(select case when pg_catalog.record_ne(row${tuple("last")}, row${tuple("next")}) then pg_catalog.json_build_array(${texts}) else '[]' end ` +
    `from ${rowAt(limit - 1)} "last", ${rowAt(limit)} "next")`
  );
};

describe("a page by cursor", () => {
  const byYear = read("paints", { select: columns("hue"), order: [term("year")], window: two });

  test("reads its rows and one more, and returns the order values of its last row", async () => {
    const first = { ...byYear, page: { kind: "first" } } as const;
    const order = `"paints"."year", "paints"."id"`;
    const kept = `select "paints"."hue", "paints"."year", "paints"."id" from "api"."paints" as "paints" order by ${order} limit 3`;
    expect(fixture.text(first)).toBe(
      answering(`select "paints"."hue" from "result" as "paints" order by ${order} limit 2`, {
        with: `"result" as (${kept})`,
        more: place([`"paints"."year"`, `"paints"."id"`], order, 2),
      }),
    );
    expect(await fixture.run(first)).toMatchObject({ rowCount: 2, position: ["2000", "14"] });
  });

  const searched = (intent: Paged) => /"result" as \((.*?)\) select coalesce/s.exec(fixture.text(intent))![1];
  const rowsWhere = (condition: string, order: string) =>
    `select "paints"."id" from "api"."paints" as "paints" where ${condition} order by ${order} limit 3`;
  const paints = (order: readonly OrderTerm[]) => read("paints", { select: columns("id"), order, window: two });
  const [id, hue, year, price] = ["id", "hue", "year", "price"].map((name) => `"paints"."${name}"`);

  test("starts in one range of an index with its order", () => {
    expect(searched(behind(paints([]), ["7"]))).toBe(rowsWhere(`${id} > $1`, `${id}`));
    const upwards = paints([term("hue"), term("year")]);
    expect(searched(behind(upwards, ["a", "2001", "7"]))).toBe(
      `select ${id}, ${hue}, ${year} from "api"."paints" as "paints" where (${hue}, ${year}, ${id}) > ($1, $2, $3) ` +
        `order by ${hue}, ${year}, ${id} limit 3`,
    );
    const downwards = paints([down("id")]);
    expect(searched(behind(downwards, ["7"]))).toBe(rowsWhere(`${id} < $1`, `${id} desc`));
  });

  test("starts in several ranges if the directions differ, or if nulls are last", () => {
    const order = `${hue} desc, ${id}`;
    const kept = (condition: string) =>
      `(select ${id}, ${hue} from "api"."paints" as "paints" where ${condition} order by ${order} limit 3)`;
    expect(searched(behind(paints([down("hue"), term("id")]), ["a", "7"]))).toBe(
      [`${hue} < $1`, `${hue} = $1 and ${id} > $2`].map(kept).join(" union all "),
    );
    const priced = (condition: string) =>
      `(select ${id}, ${price} from "api"."paints" as "paints" where ${condition} order by ${price}, ${id} limit 3)`;
    expect(searched(behind(paints([term("price")]), ["1.5", "7"]))).toBe(
      [`(${price}, ${id}) > ($1, $2)`, `${price} is not distinct from null`].map(priced).join(" union all "),
    );
  });

  test("starts after a null", () => {
    const kept = (condition: string, order: string) =>
      `select ${id}, ${price} from "api"."paints" as "paints" where ${condition} order by ${order} limit 3`;
    expect(searched(behind(paints([term("price")]), [null, "7"]))).toBe(
      kept(`${price} is not distinct from null and ${id} > $1`, `${price}, ${id}`),
    );
    const order = `${price} desc, ${id} desc`;
    expect(searched(behind(paints([down("price")]), [null, "7"]))).toBe(
      `(${kept(`${price} is distinct from null`, order)}) union all (${kept(`${price} is not distinct from null and ${id} < $1`, order)})`,
    );
  });

  test("applies conditions, and counts without the start position", async () => {
    const where = [compare("year", "gt", "2003")];
    const intent = { ...paints([]), ...read("paints", { where, order: [], window: two }, { count: "exact" }) };
    expect(searched(behind(intent, ["7"]))).toBe(
      `select "paints".* from "api"."paints" as "paints" where ${year} > $1 and ${id} > $2 order by ${id} limit 3`,
    );
    expect(fixture.text(behind(intent, ["7"]))).toContain(
      `(select pg_catalog.count(*) from "api"."paints" as "paints" where ${year} > $1), `,
    );
    expect(await fixture.run(behind(intent, ["7"]))).toMatchObject({ rowCount: 2, total: 17 });
  });

  test("has one statement for all start positions", () => {
    const texts = ["7", "8"].map((value) => fixture.text(behind(paints([]), [value])));
    expect(texts[0]).toBe(texts[1]);
  });
});

describe("a walk through pages returns each row once and in order", () => {
  const orders: readonly (readonly OrderTerm[])[] = [
    [],
    [term("hue"), term("price")],
    [down("price"), term("hue")],
    [down("price", "last")],
    [term("price", { nulls: "first" }), down("year"), term("id")],
    [term("year"), down("price", "last"), term("hue")],
    [term("label"), down("price")],
  ];

  test.each(orders.map((order) => [order.map(({ field: { name }, direction, nulls }) => [name, direction, nulls])]))(
    "by %j",
    async (names) => {
      const order = names.map(([name, direction, nulls]) => term(name!, { direction, nulls } as Partial<OrderTerm>));
      const intent = read("paints", { order, window: three });
      // The key decides between equals, in the direction of the last term.
      const completed = [...order, term("id", { direction: order.at(-1)?.direction ?? null })];
      expect(await walk(intent)).toEqual(await whole(read("paints", { order: completed })));
    },
  );

  test("of all types with an order", async () => {
    const unordered = new Set(["json", "point", "xml"]);
    const { columns: known } = fixture.catalog.findTable({ schema: "api", name: "types" })!;
    const names = [...known.values()].filter(({ type }) => !unordered.has(type.name)).map(({ name }) => name);
    expect(names.length).toBeGreaterThan(35);
    for (const name of names) {
      for (const first of [term(name), down(name), term(name, { nulls: "first" }), down(name, "last")]) {
        const order = [first, term("id")];
        const intent = read("types", { select: columns("id"), order, window: { offset: 0, limit: 1 } });
        expect(await walk(intent), JSON.stringify(first)).toEqual(await whole(intent));
      }
    }
  });

  test("by reg types, which are numbers inside", async () => {
    await fixture.owner.query(`
      create table api.things (thing regclass primary key);
      insert into api.things values ('api.works'), ('api.artists'), ('pg_class'), ('pg_type');
      grant select on api.things to anon`);
    await fixture.reload();
    const intent = read("things", { window: { offset: 0, limit: 1 } });
    expect(await walk(intent)).toHaveLength(4);
  });

  const ordered = (by: FieldReference, more: Partial<OrderTerm> = {}): OrderTerm => ({
    field: by,
    relation: null,
    direction: null,
    nulls: null,
    ...more,
  });

  test("by the value of a JSON path", async () => {
    const order = [
      ordered(field("details", "size", "width")),
      ordered(field("details", { arrow: "->>", key: "copies" })),
    ];
    const intent = read("works", { select: columns("id"), order: [...order, term("id")], window: two });
    expect(await walk(intent)).toEqual(await whole(intent));
  });

  test("by a column of a related row, whether it is selected or not", async () => {
    const order = [ordered(field("name"), { relation: "artists", direction: "desc" }), down("id")];
    const embeds = [
      relation("artists", columns("name"), { spread: true }),
      relation("artists", columns("born"), { spread: true }),
      relation("artists", columns("name")),
      relation("artists", columns("name"), { join: "inner" }),
    ];
    for (const embed of embeds) {
      const intent = read("works", { select: [column("id"), embed], order, window: two });
      expect(await walk(intent)).toEqual(await whole(intent));
    }
  });

  test("with all their embedded rows", async () => {
    const select = [everyColumn(), column("shouted"), relation("artists", [column("name"), relation("countries", [])])];
    const intent = read("works", { select: [...select, relation("exhibitions", columns("id"))], window: two });
    const inOrder = { ...intent, selection: { ...intent.selection, orders: [{ path: [], value: [term("id")] }] } };
    expect(await walk(intent)).toEqual(await whole(inOrder));
  });

  test("of a function, which is called once", async () => {
    const intent = call("paints_since", { since: "2003" }, { order: [down("hue")], window: three });
    const completed = call("paints_since", { since: "2003" }, { order: [down("hue"), down("id")] });
    expect(await walk(intent)).toEqual(await whole(completed));
    const text = fixture.text(behind({ ...intent, count: "exact" }, ["c", "7"]));
    expect(text.split(`"paints_since"(`)).toHaveLength(2);
    const { total } = await fixture.run(behind({ ...intent, count: "exact" }, ["c", "7"]));
    expect(total).toBe((await whole(completed)).length);
  });

  test("of a view by an order that is unique", async () => {
    const intent = read("hues", { order: [down("paints"), term("hue")], window: two });
    expect(await walk(intent)).toEqual(await whole(intent));
  });

  test("as CSV, and for HEAD", async () => {
    const first = { ...read("paints", { select: columns("id"), window: two }), page: { kind: "first" } } as const;
    const csv = await fixture.run(first, { formats: [{ kind: "media", type: "text/csv" }] });
    expect(csv).toMatchObject({ body: "id\n1\n2", position: ["2"] });
    expect(await fixture.run(first, { includesBody: false })).toMatchObject({
      body: null,
      rowCount: 2,
      position: ["2"],
    });
  });
});

test("and distinguishes rows in the same position from others that are only spelled alike", async () => {
  await fixture.owner.query(`
    create view api.amounts as select n from (values (1.0), (1.00), (2.0), (null), (null)) v (n);
    grant select on api.amounts to anon`);
  await fixture.reload();
  const intent = read("amounts", { order: [term("n")], window: { offset: 0, limit: 1 } });
  expect(await fixture.run({ ...intent, page: { kind: "first" } })).toMatchObject({ position: [] });
  expect(await fixture.run(behind(intent, ["1.0"]))).toMatchObject({ body: '[{"n":2.0}]', position: ["2.0"] });
  expect(await fixture.run(behind(intent, ["2"]))).toMatchObject({ position: [] });
});
