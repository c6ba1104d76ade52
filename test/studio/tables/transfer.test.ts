import { beforeEach, describe, expect, test } from "vitest";
import type { QueryParameter } from "../../../studio/api/rest-query.ts";
import { type ExportFormat, exportRows } from "../../../studio/tables/transfer/export-rows.ts";
import {
  CsvRecordReader,
  type ImportPlan,
  JsonRecordReader,
  proposeMapping,
} from "../../../studio/tables/transfer/import-plan.ts";
import { checkImport, importRows, readRecords } from "../../../studio/tables/transfer/import-rows.ts";
import { useFixture } from "../../fixture.ts";
import { openRealtimeFixture } from "../../realtime/service.ts";
import { column, table } from "./edited-tables.ts";
import { senderFor } from "./service-requests.ts";

const SCHEMA = `
  create table public.items (
    id bigint primary key, name text not null unique, "odd name" text, price numeric, tags text[], data jsonb, at timestamptz,
    seen boolean default false, check (price < 1000)
  );
  create table public.races (id bigint primary key, "constructor" text not null, "__proto__" text, "valueOf" text default 'v');
  grant all on public.items, public.races to service_role`;

const items = table(
  "items",
  [
    column("id", "bigint", { nullable: false }),
    column("name", "text", { nullable: false }),
    column("odd name", "text"),
    column("price", "numeric"),
    column("tags", "text[]"),
    column("data", "jsonb"),
    column("at", "timestamp with time zone"),
    column("seen", "boolean", { default: "false" }),
  ],
  {
    constraints: [
      {
        name: "items_price_check",
        kind: "check",
        columns: ["price"],
        definition: "CHECK (price < 1000)",
        comment: null,
      },
    ],
  },
);
const races = table("races", [
  column("id", "bigint", { nullable: false }),
  column("constructor", "text", { nullable: false }),
  column("__proto__", "text"),
  column("valueOf", "text", { default: "'v'" }),
]);
const names = items.columns.map(({ name }) => name);

const fixture = useFixture(() => openRealtimeFixture(SCHEMA));
beforeEach(async () => {
  await fixture.owner.query("truncate items");
});

const send: ReturnType<typeof senderFor> = (path, options) =>
  senderFor(() => fixture.service.url, { role: "service_role" })(path, options);

const filling = `insert into items values
  (9223372036854775807, '=cmd|'' /C calc''!A0', '', 12.3400, '{"a,b",NULL}', '{"n": 12345678901234567890.10}', '2026-11-22 12:00:00.123456+00', null),
  (2, '<img src=x onerror=alert(1)>', null, null, '{}', '"text"', null, true),
  (3, E'two\\nlines "quoted"', ' spaces ', -5, null, '[1.0]', null, false)`;

async function exported(
  format: ExportFormat,
  options: { filters?: QueryParameter[]; columns?: string[]; safe?: boolean } = {},
) {
  const { filters = [], columns = names, safe = false } = options;
  const request = {
    schema: "public",
    table: "items",
    columns,
    filters,
    order: "id.desc",
    format,
    forSpreadsheets: safe,
  };
  return (await Array.fromAsync(exportRows(request, send))).join("");
}

async function* pieces(text: string, size = 7): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

function planFor(fileNames: readonly string[], more: Partial<ImportPlan> = {}): ImportPlan {
  return { table: items, format: "csv", mapping: proposeMapping(items, fileNames), emptyCells: "null", ...more };
}

const csvRecords = (text: string) => readRecords(pieces(text), new CsvRecordReader());
const imported = (
  records: ReturnType<typeof readRecords>,
  plan: ImportPlan,
  existing: "refuse" | "skip" | "replace" = "refuse",
) => importRows(records, { plan, existing, send, onProgress: () => {} });
const stored = async () => (await fixture.owner.query("select items::text from items order by id")).rows;

describe("an export", () => {
  test.each<ExportFormat>(["csv", "json"])("as %s is imported as the same rows", async (format) => {
    await fixture.owner.query(filling);
    const before = await stored();
    const text = await exported(format);
    await fixture.owner.query("truncate items");
    const reader = format === "csv" ? new CsvRecordReader() : new JsonRecordReader();
    const result = await imported(readRecords(pieces(text), reader), planFor(names, { format }));
    expect(result).toEqual({ status: "done", inserted: 3 });
    expect(await stored()).toEqual(before);
  });

  test("has the chosen columns of the filtered rows", async () => {
    await fixture.owner.query(filling);
    const filters: QueryParameter[] = [["id", "lt.4"]];
    expect(await exported("csv", { columns: ["id", "odd name"], filters })).toBe(
      'id,odd name\r\n3," spaces "\r\n2,\r\n',
    );
    expect(JSON.parse(await exported("json", { columns: ["id"], filters }))).toEqual([{ id: 3 }, { id: 2 }]);
  });

  test("keeps formulas as they are, unless it is for spreadsheets", async () => {
    await fixture.owner.query(filling);
    const options = { columns: ["name", "price"] };
    expect(await exported("csv", options)).toContain("\r\n=cmd|' /C calc'!A0,12.3400\r\n");
    const safe = await exported("csv", { ...options, safe: true });
    expect(safe).toContain("\r\n'=cmd|' /C calc'!A0,12.3400\r\n");
    expect(safe).toContain(",'-5\r\n");
  });

  test("has all rows of a long result", async () => {
    await fixture.owner.query("insert into items (id, name) select i, i::text from generate_series(1, 20000) i");
    expect((await exported("csv", { columns: ["id"] })).split("\r\n")).toHaveLength(20_002);
  });
});

describe("the mapping of a file", () => {
  test("takes equal names first, and then those that differ in case and spaces", () => {
    expect(proposeMapping(items, ["Name", "ID", "odd_name", "other", "name"])).toEqual({
      Name: null,
      ID: "id",
      odd_name: "odd name",
      other: null,
      name: "name",
    });
  });
});

test("columns of a file that have the same name are distinguished", async () => {
  const reader = new CsvRecordReader();
  expect(reader.read("a,,a\n1,2,3\n")).toEqual([{ line: 2, values: { a: "1", "column 2": "2", "a (3)": "3" } }]);
  expect(reader.names).toEqual(["a", "column 2", "a (3)"]);
});

describe("the check of a file", () => {
  test("names the lines and columns of values that Postgres would refuse", async () => {
    const text = 'id,name,price\n1,a,5\nx,b,1\n\n4,"c\nd",1e\n5,,2\n6,e,1,9\n';
    const check = await checkImport(csvRecords(text), planFor(["id", "name", "price"]));
    expect(check).toEqual({
      rows: 5,
      hasMore: false,
      problems: [
        { line: 3, column: "id", problem: { problem: "integer" } },
        { line: 5, column: "price", problem: { problem: "number" } },
        { line: 7, column: "name", problem: { problem: "required" } },
        { line: 8, column: null, problem: { problem: "tooManyCells" } },
      ],
    });
  });

  test("lists at most a hundred problems", async () => {
    const text = `id,name\n${"x,y\n".repeat(150)}`;
    const { problems, hasMore } = await checkImport(csvRecords(text), planFor(["id", "name"]));
    expect({ listed: problems.length, hasMore }).toEqual({ listed: 100, hasMore: true });
  });

  test("of JSON names elements that are no objects, and values that are no text", async () => {
    const text = '[{"id": 1, "name": "a"},\n5,\n{"id": {"a": 1}, "name": "b"}]';
    const records = readRecords(pieces(text), new JsonRecordReader());
    const { problems } = await checkImport(records, planFor(["id", "name"], { format: "json" }));
    expect(problems).toEqual([
      { line: 2, column: null, problem: { problem: "noObject" } },
      { line: 3, column: "id", problem: { problem: "structure" } },
    ]);
  });
});

describe("an import", () => {
  test.each([
    ["null", null],
    ["default", false],
  ] as const)("reads an empty cell as %s", async (emptyCells, seen) => {
    await imported(csvRecords("id,name,seen\n1,a,\n"), planFor(["id", "name", "seen"], { emptyCells }));
    expect((await fixture.owner.query("select seen from items")).rows).toEqual([{ seen }]);
  });

  test("reads an empty cell as an empty text where that was chosen", async () => {
    await imported(csvRecords("id,name,odd name\n1,a,\n"), planFor(["id", "name", "odd name"], { emptyCells: "text" }));
    expect((await fixture.owner.query('select "odd name" from items')).rows).toEqual([{ "odd name": "" }]);
  });

  test("is sent in requests of some thousand rows, of which those before the failed one are kept", async () => {
    const lines = Array.from({ length: 5000 }, (_, at) => `${at + 1},n${at + 1},${at === 3500 ? 2000 : 1}`);
    const result = await imported(csvRecords(`id,name,price\n${lines.join("\n")}`), planFor(["id", "name", "price"]));
    expect(result).toMatchObject({
      status: "failed",
      inserted: 2000,
      lines: [2002, 4001],
      line: 3502,
      error: { code: "23514" },
    });
    expect((await fixture.owner.query("select from items")).rowCount).toBe(2000);
  });

  test.each([
    ["a key that exists", "id,name\n1,a\n7,b\n3,c\n", 3],
    ["a key that the file has twice", "id,name\n1,a\n2,b\n1,c\n", 4],
    ["a value that only Postgres refuses", "id,name,at\n1,a,2026-01-01\n2,b,2026-01-01 25:00\n", 3],
    ["a null byte", "id,name\n1,a\n2,b\u0000\n3,c\n", null],
  ])("finds the line of %s", async (_title, text, line) => {
    await fixture.owner.query("insert into items (id, name) values (7, 'x')");
    const result = await imported(csvRecords(text), planFor(text.split("\n")[0]!.split(",")));
    expect(result).toMatchObject({ status: "failed", inserted: 0, line });
    expect((await fixture.owner.query("select from items")).rowCount).toBe(1);
  });

  test.each([
    ["skip", "old"],
    ["replace", "new"],
  ] as const)("can %s rows whose key exists", async (existing, name) => {
    await fixture.owner.query("insert into items (id, name) values (1, 'old')");
    const result = await imported(csvRecords("id,name\n1,new\n2,b\n"), planFor(["id", "name"]), existing);
    expect(result.status).toBe("done");
    expect((await fixture.owner.query("select name from items order by id")).rows).toEqual([{ name }, { name: "b" }]);
  });

  test.each<[ExportFormat, string]>([
    ["csv", 'id,constructor,__proto__,valueOf\n1,"a, b",p,\n2,c,,w\n'],
    ["json", '[{"id": 1, "constructor": "a, b", "__proto__": "p"}, {"id": 2, "constructor": "c", "valueOf": "w"}]'],
  ])("of %s has columns that are named as members of all objects", async (format, text) => {
    await fixture.owner.query("truncate races");
    const fileNames = races.columns.map(({ name }) => name);
    const mapping = proposeMapping(races, fileNames);
    const plan: ImportPlan = { table: races, format, mapping, emptyCells: "default" };
    const records = () => readRecords(pieces(text), format === "csv" ? new CsvRecordReader() : new JsonRecordReader());
    expect(await checkImport(records(), plan)).toEqual({ rows: 2, problems: [], hasMore: false });
    expect(await imported(records(), plan)).toEqual({ status: "done", inserted: 2 });
    const { rows } = await fixture.owner.query("select races::text from races order by id");
    expect(rows).toEqual([{ races: '(1,"a, b",p,v)' }, { races: "(2,c,,w)" }]);
  });

  test("lists a value that is missing in a column that is named as a member of all objects", async () => {
    const plan: ImportPlan = {
      table: races,
      format: "json",
      mapping: { constructor: "constructor" },
      emptyCells: "null",
    };
    const { problems } = await checkImport(readRecords(pieces('[{"valueOf": "w"}]'), new JsonRecordReader()), plan);
    expect(problems.map(({ column: name }) => name)).toEqual(["id", "constructor"]);
  });
});
