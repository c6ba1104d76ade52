import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { rowsPath, type TableRow } from "../../../../studio/api/rest-query.ts";
import { completeOrder, formatOrder, type SortTerm } from "../../../../studio/tables/rows/keyset.ts";
import { type RowRequest, RowWindows } from "../../../../studio/tables/rows/row-windows.ts";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { openClient } from "../../../rest-gateway/table/client.ts";
import { useService } from "../../../serve.ts";
import { until } from "../../../until.ts";

const PAGE = 10;
const SCHEMA = `
  create table public.numbered (id bigint primary key, label text);
  insert into public.numbered select 9007199254740993 + n, 'row ' || n from generate_series(0, 499) n;
  create table public.sparse (id int primary key, amount numeric, word text, "order" int, at timestamptz);
  insert into public.sparse select n, nullif(n % 7, 3), nullif(chr(34) || ', ()' || n % 5, chr(34) || ', ()2'), n % 11,
    timestamptz '2026-01-01' + (n % 13) * interval '1.000001 s' from generate_series(1, 300) n;
  create table public.pairs (one text, two int, rest int, primary key (one, two));
  insert into public.pairs select chr(97 + n % 5) || '.' || chr(92), n, n % 3 from generate_series(1, 300) n;
  create table public.keyless (label text);
  insert into public.keyless select 'row ' || n from generate_series(1, 200) n;
  create table public.moving as select 9007199254740993 + 2 * n as id from generate_series(0, 499) n;
  create table public.changing as select * from public.numbered;
  create view public.doubled as select label || '!' as label from public.keyless;
  grant all on all tables in schema public to anon`;

const database = useDatabase({ template: "empty" });
beforeAll(() => inDatabase(SCHEMA));
const service = useService({ database, settings: { REST_REQUIRE_APIKEY: "false" } });
const client = useFixture(() => openClient(service.url));

async function inDatabase(sql: string): Promise<TableRow[]> {
  return withClient(database.ownerUrl, async (owner) => (await owner.query(sql)).rows);
}

type TestTable = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly sort?: readonly SortTerm[];
  readonly rowCount: number;
  readonly maxPages?: number;
};

/** The windows of a table, and the requests that they made. */
function openWindows({ table, columns, key, sort = [], rowCount, maxPages = 12 }: TestTable) {
  const requests: RowRequest[] = [];
  const order = completeOrder(sort, key, (column) => !key.includes(column));
  const windows = new RowWindows({
    order,
    isTotalOrder: key.length > 0,
    rowCount,
    pageSize: PAGE,
    maxPages,
    read: async (request) => {
      requests.push(request);
      const query = { schema: "public", table, columns, ...request, order: formatOrder(request.order) };
      const { status, text } = await client.ask(rowsPath(query).slice("/rest/v1".length));
      if (status !== 200) throw new Error(text);
      return { rows: JSON.parse(text), size: text.length };
    },
    count: async () => {
      const { headers } = await client.ask(`/${table}?limit=1`, { method: "HEAD", headers: { Prefer: "count=exact" } });
      return Number(headers["content-range"]!.split("/")[1]);
    },
  });
  return { windows, requests };
}

async function see(windows: RowWindows, first: number, last: number): Promise<TableRow[]> {
  windows.show(first, last);
  const rows = () => Array.from({ length: last - first + 1 }, (_, index) => windows.rowAt(first + index));
  await until(() => {
    if (windows.error) throw windows.error;
    return rows().every((row, index) => row !== undefined || first + index >= windows.rowCount);
  });
  return rows().filter((row) => row !== undefined);
}

/** Reads to the end, then back to the start, three rows at a time. */
async function walk(windows: RowWindows): Promise<{ forwards: TableRow[]; backwards: TableRow[] }> {
  const forwards: TableRow[] = [];
  for (let at = 0; at < windows.rowCount; at += 3) forwards.push(...(await see(windows, at, at + 2)));
  const backwards: TableRow[] = [];
  for (let at = windows.rowCount - 1; at >= 0; at -= 1) backwards.unshift(...(await see(windows, at, at)));
  return { forwards, backwards };
}

const sparse = { table: "sparse", columns: ["id", "amount", "word", "order", "at"], key: ["id"], rowCount: 300 };
const pairs = { table: "pairs", columns: ["one", "two", "rest"], key: ["one", "two"], rowCount: 300 };

describe("windows of a table's rows", () => {
  test.each<{ of: TestTable; sql: string }>([
    { of: { table: "numbered", columns: ["id"], key: ["id"], rowCount: 500 }, sql: "t.id" },
    { of: sparse, sql: "t.id" },
    { of: { ...sparse, sort: [{ column: "amount", descending: false }] }, sql: "t.amount, t.id" },
    { of: { ...sparse, sort: [{ column: "amount", descending: true }] }, sql: "t.amount desc, t.id desc" },
    { of: { ...sparse, sort: [{ column: "at", descending: true }] }, sql: "t.at desc, t.id desc" },
    {
      of: {
        ...sparse,
        sort: [
          { column: "word", descending: true },
          { column: "order", descending: false },
          { column: "amount", descending: true },
        ],
      },
      sql: 't.word desc, t."order", t.amount desc, t.id desc',
    },
    { of: pairs, sql: "t.one, t.two" },
    { of: { ...pairs, sort: [{ column: "rest", descending: true }] }, sql: "t.rest desc, t.one desc, t.two desc" },
    { of: { table: "keyless", columns: ["label", "ctid"], key: ["ctid"], rowCount: 200 }, sql: "t.ctid" },
  ])("show all rows of $of.table once, in both directions, ordered by $sql", async ({ of, sql }) => {
    const { windows, requests } = openWindows(of);
    const { forwards, backwards } = await walk(windows);
    const expected = await inDatabase(
      `select ${of.columns.map((name) => `"${name}"::text`).join(", ")} from public.${of.table} t order by ${sql}`,
    );
    expect(forwards).toEqual(expected);
    expect(backwards).toEqual(expected);
    expect(requests.filter(({ offset }) => offset > 0)).toEqual([]);
    expect(windows.pagesInMemory).toBeLessThanOrEqual(12);
    expect(windows.isExact).toBe(true);
  });

  test("keep all digits of a bigint", async () => {
    const { windows } = openWindows({ table: "numbered", columns: ["id"], key: ["id"], rowCount: 500 });
    expect(await see(windows, 0, 0)).toEqual([{ id: "9007199254740993" }]);
  });

  test("jump by offset, from the nearer end, and continue by keyset", async () => {
    const { windows, requests } = openWindows({ table: "numbered", columns: ["label"], key: ["id"], rowCount: 400 });
    const withKey = openWindows({ table: "numbered", columns: ["id", "label"], key: ["id"], rowCount: 400 });
    windows.close();
    expect(requests).toEqual([]);
    await see(withKey.windows, 0, 5);
    await withKey.windows.countRows();
    expect([withKey.windows.rowCount, withKey.windows.isExact]).toEqual([500, true]);
    expect((await see(withKey.windows, 455, 458)).map(({ label }) => label)).toEqual([
      "row 455",
      "row 456",
      "row 457",
      "row 458",
    ]);
    expect((await see(withKey.windows, 200, 201)).map(({ label }) => label)).toEqual(["row 200", "row 201"]);
    // A page that is seen before its neighbour arrives is read by offset after a moment.
    await until(() => withKey.windows.rowAt(229) !== undefined);
    await see(withKey.windows, 190, 230);
    expect(withKey.requests.map(({ offset }) => offset).filter((offset) => offset > 0)).toEqual([40, 200]);
  });

  test("correct an estimate that is too low or too high", async () => {
    const of = { table: "numbered", columns: ["id"], key: ["id"] };
    const low = openWindows({ ...of, rowCount: 15 });
    for (let at = 0; at < low.windows.rowCount; at += 5) await see(low.windows, at, at);
    expect([low.windows.rowCount, low.windows.isExact]).toEqual([500, true]);
    const high = openWindows({ ...of, rowCount: 90_000 });
    await see(high.windows, 80_000, 80_001);
    await until(() => high.windows.isExact);
    expect(high.windows.rowCount).toBe(500);
    expect(await see(high.windows, 499, 499)).toEqual([{ id: "9007199254741492" }]);
  });

  test("read a view without a key by offset", async () => {
    const { windows } = openWindows({ table: "doubled", columns: ["label"], key: [], rowCount: 200 });
    const { forwards, backwards } = await walk(windows);
    const expected = await inDatabase("select label from public.doubled");
    expect(forwards).toEqual(expected);
    expect(backwards).toEqual(expected);
  });

  test("have neither gaps nor doubles where rows are inserted and deleted meanwhile", async () => {
    const { windows } = openWindows({ table: "moving", columns: ["id"], key: ["id"], rowCount: 500, maxPages: 60 });
    await see(windows, 0, 9);
    await see(windows, 450, 459);
    await inDatabase(`insert into public.moving select 9007199254740993 + n from generate_series(401, 425, 2) n;
      delete from public.moving where id between 9007199254741500 and 9007199254741517`);
    const forwards: TableRow[] = [];
    for (let at = 0; at < windows.rowCount; at += 5) forwards.push(...(await see(windows, at, at + 4)));
    expect(forwards).toEqual(await inDatabase("select id::text from public.moving t order by t.id"));
  });

  test("show the old rows until the new ones are read, and stop at an error until it is tried again", async () => {
    const { windows, requests } = openWindows({
      table: "changing",
      columns: ["id", "label"],
      key: ["id"],
      rowCount: 500,
    });
    await see(windows, 0, 3);
    await inDatabase("update public.changing set label = 'new'");
    windows.refresh();
    expect(windows.rowAt(0)).toMatchObject({ label: "row 0" });
    await until(() => windows.rowAt(0)?.label === "new");
    await inDatabase("revoke select on public.changing from anon");
    windows.refresh();
    await until(() => windows.error !== null);
    const { length } = requests;
    windows.show(0, 4);
    expect(requests).toHaveLength(length);
    expect(String(windows.error)).toContain("permission denied");
    await inDatabase("grant select on public.changing to anon");
    windows.retry();
    await until(() => windows.error === null && windows.rowAt(0) !== undefined);
  });
});
