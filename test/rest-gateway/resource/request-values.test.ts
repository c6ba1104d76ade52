import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { openResources, type Resources } from "./open-resources.ts";

const SCHEMA = `
  grant usage on schema public to anon;
  create domain even as int check (value % 2 = 0);
  create table visits (id int primary key generated always as identity, words text, day date, due_at timestamptz, at time,
    span interval, net inet, period tstzrange, days date[], price numeric(5,2), code varchar(5), pair even, found tsquery,
    kin regclass, kinds regtype[], shape point, mask bit(3), half int generated always as (10 / nullif(length(words), 3)) stored, kept jsonb);
  insert into visits (day, due_at) values ('2026-02-03', '2026-02-03T04:05:06Z');
  create table calendar (day date primary key, note text);
  create table entries (id int primary key, day date references calendar);
  insert into calendar values ('2026-02-03', 'a day');
  create function put_off(visits, until_day date, why text default null) returns visits language sql volatile
    as $$ update visits set day = until_day where id = $1.id returning * $$;
  create function stumble(visits, at date) returns date language plpgsql volatile
    as $$ begin return 'the ' || at || 'th'; end $$;
  create function object(visits) returns visits language plpgsql volatile
    as $$ begin raise exception 'Not on Sundays.' using errcode = 'invalid_datetime_format'; end $$;
  create table socks (id even primary key, pairs even, more_pairs even);
  insert into socks values (2);
  grant select, insert, update, delete on all tables in schema public to anon;
  grant execute on all functions in schema public to anon;
`;

let ask: Resources["ask"];
const resources = useFixture(() => openResources({ template: "empty", sql: SCHEMA }));
beforeAll(async () => {
  ask = resources.ask;
});

async function refused(path: string, sent?: { method: string; body: unknown }) {
  const { status, body } = await ask(path, sent);
  const { code, details } = body.error;
  return [status, code, ...details.map(({ field }: { field: string }) => field)];
}

describe("the error for a value that Postgres cannot parse names its field", () => {
  test.each([
    [{ day: "2026-13-45" }, "day"],
    [{ day: "2026-02-30", words: "2026-02-30" }, "day"],
    [{ day: "2026-02-03", due_at: "soon" }, "due_at"],
    [{ day: "2026-02-03", due_at: "2026-02-03T25:00:00Z", at: "05:00" }, "due_at"],
    [{ due_at: "" }, "due_at"],
    [{ due_at: "2026-02-03T04:05:06 Mars/Base" }, "due_at"],
    [{ at: "25:00" }, "at"],
    [{ span: "many" }, "span"],
    [{ net: "1.2", words: "1.2" }, "net"],
    [{ period: "[3,2" }, "period"],
    [{ period: "[2026-02-03,2026-01-01)" }, "period"],
    [{ days: ["2026-02-03", "x"] }, "days"],
    [{ price: 1000 }, "price"],
    [{ code: "too long" }, "code"],
    [{ found: "tea &" }, "found"],
    [{ pair: 3 }, "pair"],
    [{ kept: { day: "soon" }, day: "soon" }, "day"],
    [{ kin: "no_such_table", shape: "(1,2)" }, "kin"],
    [{ kin: "a..b" }, "kin"],
    [{ kinds: ["int", "(1,2)"] }, "kinds"],
    [{ kinds: ["int", "no_such_type"] }, "kinds"],
  ])("in a body: %j", async (body, field) => {
    const [status, code, ...fields] = await refused("/api/v1/visits", { method: "POST", body });
    expect([status, code, fields]).toEqual(["pair" in body ? 422 : 400, "VALIDATION_ERROR", [field]]);
    expect((await refused("/api/v1/visits/1", { method: "PATCH", body })).slice(1)).toEqual([
      "VALIDATION_ERROR",
      field,
    ]);
  });

  test("in one row of several, and by the names of the version", async () => {
    const body = [{ day: "2026-02-03" }, { day: "2026-02-03", dueAt: "soon" }];
    expect(await refused("/api/v2/visits", { method: "POST", body })).toEqual([400, "VALIDATION_ERROR", "1.dueAt"]);
  });

  test.each([
    ["day=2026-13-45", "day"],
    ["words=soon&due_at=soon", "due_at"],
    ["due_at=2026-02-03T04:05:06Z&due_at=soon", "due_at"],
    ["day=2026-02-03&due_at=soon", "due_at"],
    ["days=x", "days"],
    ["net=", "net"],
    ["period=x", "period"],
    ["kept={", "kept"],
    ["found=tea%20%26", "found"],
    ["kin=no_such_table", "kin"],
    ["kinds={-}", "kinds"],
  ])("in a filter: %s", async (query, field) => {
    expect(await refused(`/api/v1/visits?${query}`)).toEqual([400, "VALIDATION_ERROR", field]);
  });

  test.each([
    [{ period: "x" }, "This must be a range such as [a,b) whose bounds are in order."],
    [{ found: "tea &" }, "This must be a query such as fat & rat."],
    [{ days: ["x"] }, "This must be a list, each item a date such as 2026-01-31."],
    [{ shape: "x" }, "This must be a point such as (1,2)."],
    [{ kin: "x" }, "This must be a valid regclass."],
    [{ mask: "10" }, "This must be a valid bit."],
    [{ price: 1000 }, "A number is out of range."],
    [{ day: "2026-13-45" }, "There is no such day or time."],
    [{ day: "soon", days: ["soon"] }, "A value is not acceptable."],
    [{ kept: { a: "\0" } }, "A text has a character that cannot be stored."],
  ])("in plain words: %j", async (sent, message) => {
    const { status, body } = await ask("/api/v1/visits", { method: "POST", body: sent });
    expect([status, body.error.code, body.error.message]).toEqual([400, "VALIDATION_ERROR", message]);
  });

  test("and the words of a function are kept", async () => {
    const { status, body } = await ask("/api/v1/visits/1/object", { method: "POST", body: {} });
    expect([status, body.error.code, body.error.message]).toEqual([400, "VALIDATION_ERROR", "Not on Sundays."]);
  });

  test("in an argument of an action", async () => {
    const act = (name: string, body: object) => refused(`/api/v2/visits/1/${name}`, { method: "POST", body });
    expect(await act("put-off", { untilDay: "2026-13-45", why: "2026-13-45" })).toEqual([
      400,
      "VALIDATION_ERROR",
      "untilDay",
    ]);
    // An error inside the function is not blamed on its argument.
    expect(await act("stumble", { at: "2026-02-03" })).toEqual([400, "VALIDATION_ERROR"]);
  });

  test("in a path it is an invalid id", async () => {
    for (const path of [
      "/calendar/2026-13-45",
      "/calendar/soon",
      "/calendar/soon/entries",
      "/calendar/soon/entries/1",
    ]) {
      expect(await refused(`/api/v1${path}`)).toEqual([400, "INVALID_ID"]);
      expect(await refused(`/api/v2${path}`)).toEqual([400, "VALIDATION_ERROR"]);
    }
    expect((await ask("/api/v1/calendar/2026-02-03")).body.note).toBe("a day");
    const patch = { method: "PATCH", body: { day: "2026-02-30" } };
    expect(await refused("/api/v1/calendar/2026-02-03", patch)).toEqual([400, "VALIDATION_ERROR", "day"]);
  });

  test("and names none if several fields may be the cause", async () => {
    for (const body of [{ pairs: 3 }, { more_pairs: 3 }]) {
      const { status, body: response } = await ask("/api/v1/socks/2", { method: "PATCH", body });
      expect([status, response.error.code, response.error.details ?? []]).toEqual([422, "VALIDATION_ERROR", []]);
    }
  });

  test("and long values are checked as fast as they are read", async () => {
    const post = (body: object) => refused("/api/v1/visits", { method: "POST", body });
    const blanks = " ".repeat(1_000_000);
    expect(await post({ code: `${blanks}x` })).toEqual([400, "VALIDATION_ERROR", "code"]);
    expect(await post({ day: `x${blanks}x` })).toEqual([400, "VALIDATION_ERROR", "day"]);
    expect(await post({ day: `x${blanks}x`, due_at: " " })).toEqual([400, "VALIDATION_ERROR"]);
    const { status } = await ask("/api/v1/visits", { method: "POST", body: { code: `12345${blanks}` } });
    expect(status).toBe(201);
  });

  test("and names none if a computed column fails", async () => {
    const body = { words: "", day: "2026-02-03" };
    expect(await refused("/api/v1/visits", { method: "POST", body })).toEqual([400, "VALIDATION_ERROR"]);
  });
});

test("trailing blanks do not make a text too long, and characters are counted", async () => {
  const made = async (code: string) => (await ask("/api/v1/visits", { method: "POST", body: { code } })).body.code;
  expect([await made("short   "), await made("😀😀😀😀😀")]).toEqual(["short", "😀😀😀😀😀"]);
});

test("a time without a zone is in the time zone of the database", async () => {
  const body = { due_at: "2026-07-08T09:10:11" };
  const made = await ask("/api/v1/visits", { method: "POST", body });
  const { rows } = await resources.owner.query("select $1::timestamptz = $2::timestamptz as same", [
    body.due_at,
    made.body.due_at,
  ]);
  expect([made.status, rows[0].same]).toEqual([201, true]);
});
