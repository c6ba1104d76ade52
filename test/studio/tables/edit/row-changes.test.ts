import { beforeEach, describe, expect, test } from "vitest";
import type { TableRow } from "../../../../studio/api/rest-query.ts";
import { countAffected, findCascade, isRestricted } from "../../../../studio/tables/edit/cascade.ts";
import { columnsOfError, findViolated, type RowError } from "../../../../studio/tables/edit/field-errors.ts";
import {
  deleteRows,
  insertRow,
  type RowChanger,
  readRows,
  updateRow,
} from "../../../../studio/tables/edit/row-changes.ts";
import { deleteRequests, type RowValues, updateRequest } from "../../../../studio/tables/edit/row-requests.ts";
import { undoChange } from "../../../../studio/tables/edit/undo.ts";
import { errorText } from "../../../../studio/tables/edit/value-texts.ts";
import { useFixture } from "../../../fixture.ts";
import { openRealtimeFixture } from "../../../realtime/service.ts";
import { until } from "../../../until.ts";
import { column, reference, table } from "../edited-tables.ts";
import { senderFor } from "../service-requests.ts";

const SCHEMA = `
  create type public.mood as enum ('ok', 'so "so"');
  create table public.films (
    id bigint primary key, title varchar(20) not null check (title <> ''), price numeric(30, 10), seen boolean,
    mood public.mood, at timestamptz, day date, ref uuid, data jsonb, raw json, tags text[], bytes bytea, span int4range,
    shout text generated always as (upper(title)) stored
  );
  create table public.reviews (id int primary key, film bigint references public.films on delete cascade, body text unique);
  create table public.likes (id int primary key, review int references public.reviews on delete cascade);
  create table public.prizes (id int primary key, film bigint references public.films on delete set null);
  create table public.screenings (id int primary key, film bigint references public.films);
  create table public.drafts (id int primary key, owner text, body text);
  create table public.letters (id int primary key, body text);
  alter table public.drafts enable row level security;
  alter table public.letters enable row level security;
  create policy read on public.drafts for select using (true);
  create policy change on public.drafts for update using (owner = (select auth.jwt() ->> 'sub'));
  create policy send on public.letters for insert with check (body <> 'forbidden');
  grant all on public.films, public.reviews, public.likes, public.prizes, public.screenings to service_role;
  grant all on public.drafts to authenticated;
  grant insert, select on public.letters to authenticated`;

const films = table(
  "films",
  [
    column("id", "bigint", { nullable: false }),
    column("title", "character varying(20)", { nullable: false }),
    column("price", "numeric(30,10)"),
    column("seen", "boolean"),
    column("mood", "mood", { labels: ["ok", 'so "so"'] }),
    column("at", "timestamp with time zone"),
    column("day", "date"),
    column("ref", "uuid"),
    column("data", "jsonb"),
    column("raw", "json"),
    column("tags", "text[]"),
    column("bytes", "bytea"),
    column("span", "int4range"),
    column("shout", "text", { generated: { kind: "stored", expression: "upper(title)" } }),
  ],
  {
    constraints: [
      {
        name: "films_title_check",
        kind: "check",
        columns: ["title"],
        definition: "CHECK (title <> '')",
        comment: null,
      },
    ],
  },
);
const reviews = table("reviews", [column("id", "integer"), column("film", "bigint"), column("body", "text")], {
  foreign_keys: [reference("film", "films", "cascade")],
});
const likes = table("likes", [column("id", "integer"), column("review", "integer")], {
  foreign_keys: [reference("review", "reviews", "cascade")],
});
const prizes = table("prizes", [column("id", "integer"), column("film", "bigint")], {
  foreign_keys: [reference("film", "films", "set null")],
});
const screenings = table("screenings", [column("id", "integer"), column("film", "bigint")], {
  foreign_keys: [reference("film", "films", "no action")],
});
const tables = [films, reviews, likes, prizes, screenings];
const drafts = table("drafts", [column("id", "integer"), column("owner", "text"), column("body", "text")]);
const letters = table("letters", [column("id", "integer"), column("body", "text")]);

const fixture = useFixture(() => openRealtimeFixture(SCHEMA));
beforeEach(async () => {
  await fixture.owner.query("truncate films, reviews, likes, prizes, screenings, drafts, letters");
});

const senderOf = (claims: object) => senderFor(() => fixture.service.url, claims);
const service = { role: "service_role" };
const changerOf = (edited: typeof films, claims: object = service): RowChanger => ({
  table: edited,
  key: edited.primary_key,
  send: senderOf(claims),
});
const changer = changerOf(films);

async function insertFilm(values: RowValues = {}): Promise<TableRow> {
  return (await insertRow(changer, { id: "1", title: "A", ...values }))!;
}

async function errorOf(work: Promise<unknown>): Promise<RowError> {
  return work.then(
    () => expect.fail("no error"),
    (error) => error,
  );
}

const EXACT: RowValues = {
  price: "12345678901234567890.1234567891",
  seen: "false",
  mood: 'so "so"',
  at: "2026-11-22 12:00:00.123456+00",
  day: "0044-03-15 BC",
  ref: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
  data: '{"n": 12345678901234567890.10, "html": "<img src=x onerror=alert(1)>"}',
  raw: '{"b":1, "a":1.00}',
  tags: '{"a,b",NULL,"","\\"q\\""}',
  bytes: "\\x00ff",
  span: "[1,5)",
};

describe("an inserted row", () => {
  test("has the values that were written, with all digits", async () => {
    const row = await insertFilm({ id: "9223372036854775807", title: "=cmd|' /C calc'!A0", ...EXACT });
    expect(row).toEqual({
      id: "9223372036854775807",
      title: "=cmd|' /C calc'!A0",
      shout: "=CMD|' /C CALC'!A0",
      ...EXACT,
    });
  });

  test("can be one that the caller may not read", async () => {
    const written = await insertRow(changerOf(letters, { role: "authenticated" }), { id: "1", body: "hello" });
    expect(written).toBeNull();
    expect((await fixture.owner.query("select body from letters")).rows).toEqual([{ body: "hello" }]);
  });

  test("is refused by a policy", async () => {
    const error = await errorOf(
      insertRow(changerOf(letters, { role: "authenticated" }), { id: "1", body: "forbidden" }),
    );
    expect(error).toMatchObject({ code: "42501" });
    expect((await fixture.owner.query("select from letters")).rowCount).toBe(0);
  });
});

describe("an update", () => {
  test.each(Object.entries(EXACT))("of %s finds the row by its old value", async (name, value) => {
    const before = await insertFilm({ [name]: value });
    const { status } = await updateRow(changer, before, { [name]: null });
    expect(status).toBe("changed");
    const [cleared] = await readRows(changer, [before]);
    expect(cleared![name]).toBeNull();
    const result = await updateRow(changer, cleared!, { [name]: value });
    expect(result).toMatchObject({ status: "changed", row: { [name]: value } });
  });

  test.each([
    ["title", "B", "C"],
    ["raw", '{"a":1}', '{"a": 1}'],
    ["data", null, '{"a": 2}'],
  ])("of %s says that somebody else changed it meanwhile", async (name, others, mine) => {
    const before = await insertFilm({ raw: "{}", data: "{}" });
    await fixture.owner.query(`update films set ${name} = $1`, [others]);
    const result = await updateRow(changer, before, { [name]: mine });
    expect(result).toMatchObject({ status: "conflict", columns: [name], row: { [name]: others } });
  });

  test("is made although another column changed meanwhile", async () => {
    const before = await insertFilm();
    await fixture.owner.query("update films set seen = true");
    const result = await updateRow(changer, before, { title: "B" });
    expect(result).toMatchObject({ status: "changed", row: { title: "B", seen: "true" } });
  });

  test("of many long values fits into a URL", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `t${index}`);
    const before = { id: "1", ...Object.fromEntries(names.map((name) => [name, "é".repeat(900)])) };
    const values = Object.fromEntries(names.map((name) => [name, "x"]));
    const wide = table("wide", [column("id", "integer"), ...names.map((name) => column(name, "text"))]);
    const { path, unchecked } = updateRequest(wide, { key: ["id"], before, values });
    expect(path.length).toBeLessThan(8_000);
    expect(unchecked.length).toBeGreaterThan(0);
  });

  test.each([
    ["citext", "A", "a", "b"],
    ["interval", "1 mon", "30 days", "2 days"],
  ])("of type %s says that somebody else wrote an equal value of another text", async (type, first, others, mine) => {
    await fixture.owner.query(`
      create extension if not exists citext; drop table if exists notes; create table notes (id int primary key, body ${type});
      insert into notes values (1, '${first}'); grant all on notes to service_role`);
    const notes = table("notes", [column("id", "integer"), column("body", type)]);
    await until(() =>
      readRows(changerOf(notes), [{ id: "1" }])
        .then(([row]) => row?.body === first)
        .catch(() => false),
    );
    await fixture.owner.query("update notes set body = $1", [others]);
    const result = await updateRow(changerOf(notes), { id: "1", body: first }, { body: mine });
    expect(result).toMatchObject({ status: "conflict", row: { body: others } });
  });

  test("of several at the same moment is made by one of them", async () => {
    const before = await insertFilm();
    const results = await Promise.all(["B", "C", "D", "E"].map((title) => updateRow(changer, before, { title })));
    const statuses = results.map(({ status }) => status).sort();
    expect(statuses).toEqual(["changed", "conflict", "conflict", "conflict"]);
  });

  test("of a long text finds the row by reading it before", async () => {
    const [edited, long] = [changerOf(reviews), "x".repeat(20_000)];
    const before = (await insertRow(edited, { id: "1", body: long }))!;
    await expect(updateRow(edited, before, { body: "short" })).resolves.toMatchObject({ status: "changed" });
    await expect(updateRow(edited, before, { body: "other" })).resolves.toMatchObject({ status: "conflict" });
  });

  test("says that the row is gone", async () => {
    const before = await insertFilm();
    await fixture.owner.query("delete from films");
    await expect(updateRow(changer, before, { title: "B" })).resolves.toEqual({ status: "gone" });
  });

  test("says that no policy allows it, where one allows to read the row", async () => {
    await fixture.owner.query("insert into drafts values (1, 'a', 'x')");
    const before = { id: "1", owner: "a", body: "x" };
    const ofOther = changerOf(drafts, { role: "authenticated", sub: "b" });
    await expect(updateRow(ofOther, before, { body: "y" })).resolves.toEqual({ status: "refused" });
    const ofOwner = changerOf(drafts, { role: "authenticated", sub: "a" });
    await expect(updateRow(ofOwner, before, { body: "y" })).resolves.toMatchObject({ status: "changed" });
  });

  test("can change the key", async () => {
    const before = await insertFilm();
    await expect(updateRow(changer, before, { id: "2" })).resolves.toMatchObject({
      status: "changed",
      row: { id: "2" },
    });
  });
});

describe("a delete", () => {
  test("returns the rows that it deleted", async () => {
    const rows = [await insertFilm(), await insertFilm({ id: "2" })];
    await fixture.owner.query("delete from films where id = 1");
    expect(await deleteRows(changer, rows)).toEqual([rows[1]]);
  });

  test("of many rows is sent in parts that fit into a URL", async () => {
    await fixture.owner.query("insert into films (id, title) select i, 'x' from generate_series(1, 2000) i");
    const rows = Array.from({ length: 2000 }, (_, at) => ({ id: String(at + 1) }));
    expect(deleteRequests(films, ["id"], rows).length).toBeGreaterThan(1);
    expect(await deleteRows(changer, rows)).toHaveLength(2000);
  });

  test("shows before what it does to rows that refer to the deleted ones", async () => {
    const row = await insertFilm();
    await fixture.owner.query(`insert into reviews values (1, 1, 'x'), (2, 1, 'y'); insert into likes values (1, 1), (2, 1), (3, 2);
      insert into prizes values (1, 1)`);
    const steps = await findCascade({ tables, send: changer.send }, films, [row]);
    const summarize = (each: typeof steps): unknown[] =>
      each.map(({ table: { name }, action, count, steps: inner }) => [name, action, count, summarize(inner)]);
    expect(summarize(steps)).toEqual([
      ["reviews", "cascade", 2, [["likes", "cascade", 3, []]]],
      ["prizes", "set null", 1, []],
    ]);
    expect(countAffected(steps)).toBe(6);
    expect(isRestricted(steps)).toBe(false);
    await fixture.owner.query("insert into screenings values (1, 1)");
    expect(isRestricted(await findCascade({ tables, send: changer.send }, films, [row]))).toBe(true);
  });

  test("says that rows cannot be counted which the caller may not read", async () => {
    const row = await insertFilm();
    const send = senderOf({ role: "authenticated" });
    const steps = await findCascade({ tables, send }, films, [row]);
    expect(steps.map(({ count }) => count)).toEqual([null, null, null]);
  });
});

describe("undo", () => {
  const countReferences = async (rows: readonly TableRow[]) =>
    countAffected(await findCascade({ tables, send: changer.send }, films, rows));
  const undo = (change: Parameters<typeof undoChange>[1]) => undoChange(changer, change, countReferences);

  test("of an update restores the old values", async () => {
    const before = await insertFilm({ raw: "{}" });
    const result = await updateRow(changer, before, { title: "B", raw: null });
    const after = (result as { row: TableRow }).row;
    expect(await undo({ kind: "update", before, after, columns: ["title", "raw"] })).toEqual({
      status: "undone",
      rows: [before],
    });
  });

  test("of an update says that the row was changed again, and changes nothing", async () => {
    const before = await insertFilm();
    const after = { ...before, title: "B" };
    await fixture.owner.query("update films set title = 'C'");
    const result = await undo({ kind: "update", before, after, columns: ["title"] });
    expect(result).toEqual({ status: "impossible", reason: "changed" });
    expect((await fixture.owner.query("select title from films")).rows).toEqual([{ title: "C" }]);
  });

  test("of an insert deletes the row", async () => {
    const row = await insertFilm(EXACT);
    expect(await undo({ kind: "insert", row })).toEqual({ status: "undone", rows: [] });
    expect(await readRows(changer, [row])).toEqual([]);
  });

  test.each([
    ["changed", "update films set seen = true"],
    ["gone", "delete from films"],
    ["referenced", "insert into reviews values (1, 1, 'x')"],
  ])("of an insert says that the row is %s", async (reason, statement) => {
    const row = await insertFilm();
    await fixture.owner.query(statement);
    expect(await undo({ kind: "insert", row })).toEqual({ status: "impossible", reason });
  });

  test("of an insert does not delete what somebody changes at the same moment", async () => {
    const row = await insertFilm(EXACT);
    const change = async () => {
      await fixture.owner.query("update films set seen = true");
      return 0;
    };
    const result = await undoChange(changer, { kind: "insert", row }, change);
    expect(result).toEqual({ status: "impossible", reason: "changed" });
    let isChanged = false;
    const send: RowChanger["send"] = async (path, options) => {
      if (options.method === "DELETE" && !isChanged) await fixture.owner.query("update films set seen = null");
      isChanged ||= options.method === "DELETE";
      return changer.send(path, options);
    };
    const after = { ...row, seen: "true" };
    const deleted = await undoChange({ ...changer, send }, { kind: "insert", row: after }, countReferences);
    expect([isChanged, deleted]).toEqual([true, { status: "impossible", reason: "changed" }]);
  });

  test("of a delete inserts the rows again, without generated columns", async () => {
    const rows = [await insertFilm(EXACT), await insertFilm({ id: "2" })];
    await deleteRows(changer, rows);
    expect(await undo({ kind: "delete", rows, alsoChanged: 0 })).toEqual({ status: "undone", rows });
  });

  test("of a delete says that it cannot restore columns that the caller may not read", async () => {
    const rows = [await insertFilm()];
    const partial = { ...changer, table: { ...changer.table, hasHiddenColumns: true } };
    const result = await undoChange(partial, { kind: "delete", rows, alsoChanged: 0 }, async () => 0);
    expect(result).toEqual({ status: "impossible", reason: "hiddenColumns" });
  });

  test("says that it cannot restore JSON's null, which the interface stores as NULL", async () => {
    await fixture.owner.query("insert into films (id, title, data) values (1, 'A', 'null')");
    const [row] = (await readRows(changer, [{ id: "1" }])) as [TableRow];
    const obstacle = { status: "impossible", reason: "jsonNull" };
    expect(await undo({ kind: "delete", rows: [row], alsoChanged: 0 })).toEqual(obstacle);
    const after = { ...row, data: null };
    expect(await undo({ kind: "update", before: row, after, columns: ["data"] })).toEqual(obstacle);
  });

  test("of a delete says that it cannot restore rows that were deleted together", async () => {
    const rows = [await insertFilm()];
    const result = await undo({ kind: "delete", rows, alsoChanged: 2 });
    expect(result).toEqual({ status: "impossible", reason: "cascaded" });
  });
});

describe("an error of the service", () => {
  test.each<[RowValues, readonly string[]]>([
    [{ title: null }, ["title"]],
    [{ title: "" }, ["title"]],
    [{ title: "x".repeat(21) }, ["title"]],
    [{ id: "1" }, ["id"]],
    [{ mood: "sad" }, ["mood"]],
    [{ span: "x" }, ["span"]],
    [{ at: "yesterday-ish 5", day: "tomorrow" }, ["at"]],
    [{ price: "1e25" }, []],
    [{ shout: "x" }, ["shout"]],
  ])("about %j is shown at the columns %j", async (values, columns) => {
    await insertFilm();
    const row = { id: "2", title: "B", ...values };
    const error = await errorOf(insertRow(changer, row));
    expect(columnsOfError(films, error, row)).toEqual(columns);
  });

  test("about a reference is shown at its column", async () => {
    const row = { id: "1", film: "77" };
    expect(columnsOfError(reviews, await errorOf(insertRow(changerOf(reviews), row)), row)).toEqual(["film"]);
  });

  test("about a check comes with its definition", async () => {
    const error = await errorOf(insertFilm({ title: "" }));
    expect(findViolated(films.constraints, error)?.definition).toBe("CHECK (title <> '')");
  });

  test.each<[RowValues, RegExp]>([
    [{ title: null }, /^A value is required\.$/],
    [{ title: "" }, /^This value is not allowed\. \(.* · CHECK \(title <> ''\)\)$/],
    [{ title: "x".repeat(21) }, /^This value is too long for the column\. \(/],
    [{ id: "1" }, /^Another row has this value\. Enter a value that no other row has\. \(.*Key \(id\)=\(1\)/],
    [{ mood: "sad" }, /^This is not a value of the column’s type\. \(/],
    [{ price: "1e25" }, /^This value is out of the range of the column’s type\. \(/],
  ])("about %j says what to do, before the message of Postgres", async (values, text) => {
    await insertFilm();
    const error = await errorOf(insertRow(changer, { id: "2", title: "B", ...values }));
    expect(errorText(films, error)).toMatch(text);
  });

  test("about a check has the comment on the constraint, and one about a reference the table", async () => {
    const constraints = films.constraints.map((constraint) => ({ ...constraint, comment: "Give a title." }));
    const unnamed = await errorOf(insertFilm({ title: "" }));
    expect(errorText({ ...films, constraints }, unnamed)).toMatch(/^Give a title\. \(/);
    const unknown = await errorOf(insertRow(changerOf(reviews), { id: "1", film: "77" }));
    expect(errorText(reviews, unknown)).toMatch(/^There is no such row in films\. Choose one that exists\. \(/);
  });
});
