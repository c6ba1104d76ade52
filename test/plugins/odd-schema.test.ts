import { readFileSync } from "node:fs";
import { join } from "node:path";
import { introspectionFromSchema, isEnumType, isInputObjectType, isObjectType, printType } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { alice } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: readFileSync(join(import.meta.dirname, "odd-schema.sql"), "utf8"),
});
const read = (source: string, variables?: Record<string, unknown>) => generated.read(alice, source, variables);
const ask = (source: string, variables?: Record<string, unknown>) => generated.ask(alice, source, variables);

function fieldNames(typeName: string): string[] {
  const type = generated.schema.getType(typeName);
  return isObjectType(type) || isInputObjectType(type) ? Object.keys(type.getFields()).sort() : [];
}

const ONE = "00000000-0000-4000-8000-000000000001";
const TWO = "00000000-0000-4000-8000-000000000002";

describe("references", () => {
  test("have fields in both directions, to the same table too", async () => {
    expect(await read(`{ account(id: "${TWO}") { name parent { name accounts { name } } } }`)).toEqual({
      account: { name: "two", parent: { name: "one", accounts: [{ name: "two" }] } },
    });
  });

  test("from one table to another have different names; the first has the short one", async () => {
    expect(
      await read(`{ transfers { edges { node { amount doubled fromAccount { name } toAccount { name } } } } }`),
    ).toEqual({
      transfers: {
        edges: [
          { node: { amount: "12.50", doubled: "25.00", fromAccount: { name: "one" }, toAccount: { name: "two" } } },
        ],
      },
    });
    expect(fieldNames("Account")).toContain("transfersByToAccount");
  });

  test("of several columns", async () => {
    expect(await read("{ badges { edges { node { membership { role badges { id } } } } } }")).toEqual({
      badges: { edges: [{ node: { membership: { role: "member", badges: [{ id: "1" }] } } }] },
    });
    expect(
      await read("{ membership(tenant: 1, member: 2) { role } none: membership(tenant: 1, member: 3) { role } }"),
    ).toEqual({
      membership: { role: "member" },
      none: null,
    });
  });

  test("that are unique return one row, not many", async () => {
    expect(await read(`{ account(id: "${ONE}") { profile { id bio account { name } } } }`)).toEqual({
      account: { profile: { id: ONE, bio: "First.", account: { name: "one" } } },
    });
  });

  test("have the name of their column, or another one if that is taken", () => {
    expect(fieldNames("Paid")).toEqual(["accountByAuthorId", "author", "authorId", "id", "paid", "paidId"]);
    expect(fieldNames("Like")).toEqual(["account", "accountId", "transfer", "transferId"]);
  });

  test("by text are ids, as the text is", async () => {
    expect(await read(`{ country(code: "DE") { code name cities { id country { code } owner } } }`)).toEqual({
      country: { code: "DE", name: "Germany", cities: [{ id: "1", country: { code: "DE" }, owner: ONE }] },
    });
    expect(generated.schema.getQueryType()?.getFields().country?.args[0]?.type.toString()).toBe("ID!");
  });
});

describe("names", () => {
  test("that are the same in singular and plural are distinguished", async () => {
    expect(await read("{ allNews { edges { node { id title } } } }")).toEqual({
      allNews: { edges: [{ node: { id: "7", title: "Seven" } }] },
    });
  });

  test("that are invalid in GraphQL are replaced", async () => {
    expect(
      await read(
        `{ oddName(theId: 1) { theId grosse aB _1st class first after } oddNames(filter: { first: "f", after: "a" }) { totalCount } }`,
      ),
    ).toEqual({
      oddName: { theId: "1", grosse: "groß", aB: 2, _1st: "x", class: "y", first: "f", after: "a" },
      oddNames: { totalCount: 1 },
    });
    const { createOddName } = await read(
      `mutation { createOddName(input: { theId: 5, aB: 6, grosse: "g" }) { theId aB grosse } }`,
    );
    expect(createOddName).toEqual({ theId: "5", aB: 6, grosse: "g" });
  });

  test("that GraphQL reserves are replaced", () => {
    expect(fieldNames("SubscriptionRecord")).toEqual(["id", "plan"]);
    expect(fieldNames("QueryRecord")).toEqual(["id", "sql"]);
    expect(fieldNames("Mutation")).toEqual(
      expect.arrayContaining(["createSubscription", "updateQuery", "deleteReport2026"]),
    );
    expect(fieldNames("Query")).toEqual(
      expect.arrayContaining(["subscription", "subscriptions", "report2026", "allReport2026"]),
    );
  });

  test("of an enum's values, and of an enum beside a table with its plural, do not clash", () => {
    const mood = generated.schema.getType("Mood");
    const values = isEnumType(mood) ? mood.getValues().map(({ name, value }) => [name, value]) : [];
    expect(Object.fromEntries(values)).toEqual({
      very_happy: "very happy",
      so_so: "so-so",
      so_so_2: "so so",
      _EMPTY_: "",
      true_: "true",
      _1st: "1st",
      PERCENT: "%",
      grosse: "größe",
      _x: "__x",
    });
  });

  test("of Object.prototype properties, or reserved in GraphQL, are usable", async () => {
    const part = generated.schema.getType("Part");
    expect(isEnumType(part) && part.getValues().map(({ name, value }) => [name, value])).toEqual([
      ["constructor", "constructor"],
      ["toString", "toString"],
      ["_proto__", "__proto__"],
    ]);
    expect(fieldNames("Marked")).toEqual(["_v", "_vId", "constructor", "id"]);
    expect(await read("mutation { createConstructor(input: { id: 1, toString: constructor }) { toString } }")).toEqual({
      createConstructor: { toString: "constructor" },
    });
    expect(await read("mutation { createMarked(input: { id: 1, _v: 1 }) { constructor _v { toString } } }")).toEqual({
      createMarked: { constructor: null, _v: { toString: "constructor" } },
    });
  });
});

describe("values", () => {
  test("of many types are returned as they are", async () => {
    const { mood } = await read(`{
      mood(id: 1) {
        mood place { street zipCode } places { street zipCode } price { start { value inclusive } end { value inclusive } }
        own extra raw ip took { years hours } span { start { value } end { value } } bits local day clock moments big flag
      }
    }`);
    expect(mood).toEqual({
      mood: "very_happy",
      place: { street: 'Street "1", \\ here', zipCode: null },
      places: [
        { street: "A", zipCode: "b c" },
        { street: null, zipCode: null },
      ],
      price: { start: { value: "1.5", inclusive: true }, end: { value: "3", inclusive: false } },
      own: 3,
      extra: { a: [1, null] },
      raw: "AP8=",
      ip: "10.0.0.1",
      took: { years: 1, hours: 2 },
      span: { start: { value: 1 }, end: { value: 5 } },
      bits: "101",
      local: "2026-01-02T03:04:05.6",
      day: "2026-01-02",
      clock: expect.stringContaining("03:04:05"),
      moments: ["2026-01-01T00:00:00.000Z", "infinity", null],
      big: "9007199254740993",
      flag: true,
    });
  });

  test("outside the range of dates do not affect the others", async () => {
    expect(await read("{ transfers { edges { node { ends days spans { start { value } } } } } }")).toEqual({
      transfers: {
        edges: [
          {
            node: {
              ends: "infinity",
              days: ["2026-01-01", "infinity"],
              spans: { start: { value: "2026-01-01T00:00:00.000Z" } },
            },
          },
        ],
      },
    });
  });

  test("at 24:00 and below zero are returned exactly", async () => {
    const shift = "{ ends others drift { days minutes seconds } drifts { seconds } }";
    const result = {
      ends: "24:00:00.000000",
      others: ["24:00:00.000000", "12:30:00.500000", null],
      drift: { days: -2, minutes: 0, seconds: -1.25 },
      drifts: [{ seconds: -0.5 }, { seconds: 1.000001 }, null],
    };
    expect(await read(`{ shift(id: 1) ${shift} }`)).toEqual({ shift: result });

    const input = { id: 2, ...result, others: [result.ends], drifts: [{ seconds: -0.5 }] };
    expect(
      await read(`mutation ($input: CreateShiftInput!) { createShift(input: $input) ${shift} }`, { input }),
    ).toEqual({ createShift: { ...result, others: [result.ends], drifts: [{ seconds: -0.5 }] } });
  });

  test("are accepted as they are returned", async () => {
    const input = {
      id: 2,
      mood: "so_so_2",
      place: { street: 'A "b", c', zipCode: "1" },
      places: [{ street: "x" }],
      own: 4,
      extra: { b: 1 },
      raw: "AP8=",
      took: { hours: 3 },
      day: "2026-05-06",
      local: "2026-01-02T03:04:05",
      moments: ["2026-01-01T00:00:00.000001Z"],
      big: "9007199254740993",
    };
    const { createMood } = await read(
      `mutation ($input: CreateMoodInput!) {
        createMood(input: $input) { id mood place { street zipCode } places { street zipCode } own extra raw took { hours } day local moments big }
      }`,
      { input },
    );
    expect(createMood).toEqual({
      ...input,
      id: "2",
      places: [{ street: "x", zipCode: null }],
      moments: ["2026-01-01T00:00:00.000001Z"],
    });
  });

  test("of unknown types are strings, as Postgres writes them", async () => {
    const backup = { id: "1", at: "0/1F", pages: "{[1,3),[5,6)}", parts: ["{[1,3)}", "{}"] };
    expect(
      await read("mutation ($input: CreateBackupInput!) { createBackup(input: $input) { id at pages parts } }", {
        input: { ...backup, id: 1 },
      }),
    ).toEqual({ createBackup: backup });
    expect(
      await read(
        `{ one: backups(at: "0/1f") { edges { node { id } } } none: backups(at: "0/0") { edges { node { id } } } }`,
      ),
    ).toEqual({
      one: { edges: [{ node: { id: "1" } }] },
      none: { edges: [] },
    });
    expect((await ask(`{ backups(at: "x") { edges { node { id } } } }`)).faults).toMatchObject([
      { code: "VALIDATION_ERROR", path: "backups" },
    ]);
  });

  test("that Postgres computes, or always generates, are not input fields", () => {
    expect(fieldNames("CreateTransferInput")).toEqual([
      "amount",
      "at",
      "days",
      "ends",
      "fromAccountId",
      "spans",
      "toAccountId",
    ]);
    expect(fieldNames("UpdateTransferInput")).not.toContain("doubled");
  });

  test("are refused if a domain refuses them", async () => {
    expect((await ask("mutation { createMood(input: { id: 3, own: -1 }) { id } }")).faults).toMatchObject([
      { code: "VALIDATION_ERROR" },
    ]);
  });
});

describe("a table", () => {
  test("without a key is a list, in a stable order", async () => {
    expect(await read("{ logs { message level } some: logs(limit: 2, offset: 1) { message } }")).toEqual({
      logs: [
        { message: "a", level: 1 },
        { message: "a", level: 1 },
        { message: "b", level: 2 },
        { message: "c", level: 3 },
      ],
      some: [{ message: "a" }, { message: "b" }],
    });
    expect(fieldNames("Query")).not.toContain("log");
    expect(fieldNames("Mutation").filter((name) => /Log$/.test(name))).toEqual(["createLog"]);
    expect(await read("{ onlyJsons { data } }")).toEqual({ onlyJsons: [] });
  });

  test("with a unique column that is not null has that as its key", async () => {
    expect(await read(`{ uniqueOnly(code: "a") { note } uniqueOnlies { edges { node { code } } } }`)).toEqual({
      uniqueOnly: { note: "x" },
      uniqueOnlies: { edges: [{ node: { code: "a" } }, { node: { code: "b" } }] },
    });
  });

  test("has the columns that were granted", async () => {
    expect(fieldNames("Secret")).toEqual(["id", "shown"]);
    expect(fieldNames("UpdateSecretInput")).toEqual(["shown"]);
    expect(fieldNames("Mutation").filter((name) => /Secret$/.test(name))).toEqual(["updateSecret"]);
    expect(await read(`mutation { updateSecret(id: 1, input: { shown: "more" }) { id shown } }`)).toEqual({
      updateSecret: { id: "1", shown: "more" },
    });
  });

  test("that may be written and not read returns true", async () => {
    expect(await read(`mutation { createWriteOnly(input: { message: "Hello" }) }`)).toEqual({ createWriteOnly: true });
    expect(generated.schema.getType("WriteOnly")).toBeUndefined();
    expect((await generated.owner.query("select message from public.write_only")).rows).toEqual([{ message: "Hello" }]);
  });

  test("without grants is not reported", () => {
    const names = Object.keys(generated.schema.getTypeMap()).filter((name) => /nothing|empty_?table/i.test(name));
    expect(names).toEqual([]);
  });

  test("that is partitioned is one table", async () => {
    expect(await read(`{ event(id: 1, at: "2026-05-01T00:00:00Z") { what } events { totalCount } }`)).toEqual({
      event: { what: "May" },
      events: { totalCount: 1 },
    });
    expect(Object.keys(generated.schema.getTypeMap()).filter((name) => /^Events?2026/.test(name))).toEqual([]);
    expect(
      await read(`mutation { createEvent(input: { id: 2, at: "2026-06-01T00:00:00Z", what: "June" }) { what } }`),
    ).toEqual({ createEvent: { what: "June" } });
  });
});

describe("a view", () => {
  test("is a list, and accepts the writes that Postgres allows", async () => {
    expect(await read("{ accountNames { name } totals { total } counts { n } }")).toEqual({
      accountNames: [{ name: "one" }, { name: "two" }],
      totals: [{ total: "12.50" }],
      counts: [{ n: "2" }],
    });
    const ofViews = fieldNames("Mutation").filter((name) => /(AccountName|Total|Count)$/.test(name));
    expect(ofViews).toEqual(["createAccountName"]);
  });

  test("whose comment names its key has the fields of a table", async () => {
    expect(
      await read(
        `{ keyed(id: "${ONE}") { name } keyeds(first: 1) { edges { node { name } } pageInfo { hasNextPage } } }`,
      ),
    ).toEqual({
      keyed: { name: "one" },
      keyeds: { edges: [{ node: { name: "two" } }], pageInfo: { hasNextPage: true } },
    });
    expect(await read(`mutation { updateKeyed(id: "${ONE}", input: { name: "uno" }) { name } }`)).toEqual({
      updateKeyed: { name: "uno" },
    });
    expect(await read(`mutation { updateKeyed(id: "${ONE}", input: { name: "one" }) { name } }`)).toEqual({
      updateKeyed: { name: "one" },
    });
  });
});

describe("a function", () => {
  test.each([
    ["{ add(a: 1) }", { add: 6 }],
    ["{ add(a: 1, b: 1) }", { add: 2 }],
    [`{ unnamed(arg0: 1, arg1: "x") }`, { unnamed: "1x" }],
    ["{ many }", { many: [1, 2, 3] }],
    ["{ columns { a b } }", { columns: { a: 1, b: "x" } }],
    ["{ tabled { id name } }", { tabled: [{ id: 1, name: "x" }] }],
    ["{ giveJson }", { giveJson: { a: 1 } }],
    [`{ addressOf(a: { street: "S", zipCode: "1" }) }`, { addressOf: "S" }],
    [`{ makeAddress(street: "S") { street zipCode } }`, { makeAddress: { street: "S", zipCode: "A 1" } }],
    [`{ makeAddresses(streets: ["S", "T"]) { street } }`, { makeAddresses: [{ street: "S" }, { street: "T" }] }],
    ["{ manyMoods(m: [very_happy]) }", { manyMoods: ["very_happy", "so_so_2"] }],
    ["{ maybe }", { maybe: "-1" }],
    ["{ maybe(ownerId: 7) }", { maybe: "7" }],
    ["{ later }", { later: "it's-1.5true" }],
    ["{ unwritten }", { unwritten: "{} 1 day NaN 2" }],
    ["{ strictly none: strictly(a: null) }", { strictly: 3, none: null }],
    [`{ account(id: "${ONE}") { transfers } }`, { account: { transfers: 42 } }],
    [
      `{ one: account(id: "${ONE}") { head { name } } two: account(id: "${TWO}") { head { name } } }`,
      { one: { head: null }, two: { head: { name: "one" } } },
    ],
    ["mutation { noResult(input: { a: 1 }) }", { noResult: true }],
    [`mutation { unnamedChange(input: { arg0: 1, arg1: "x" }) }`, { unnamedChange: "1x" }],
    ["mutation { manyChanges { name } }", { manyChanges: [{ name: "one" }, { name: "two" }] }],
  ])("%s", async (source, data) => {
    expect(await read(source)).toEqual(data);
  });

  test("replaces the generated field with its name", async () => {
    expect(await read("{ news(id: 1) }")).toEqual({ news: "from a function" });
    expect(await read(`mutation { createNews(id: 8, input: { title: "Eight" }) { id title } }`)).toEqual({
      createNews: { id: "8", title: "Eight" },
    });
    expect(fieldNames("CreateNewsInput")).toEqual(["title"]);
    expect(fieldNames("Mutation")).toEqual(expect.arrayContaining(["updateNews", "deleteNews"]));
  });

  test("with an optional id refuses a malformed one", async () => {
    expect((await ask(`{ maybe(ownerId: "abc") }`)).faults).toMatchObject([
      { code: "VALIDATION_ERROR", path: "maybe" },
    ]);
  });

  test("whose defaults GraphQL cannot write leaves the schema readable", () => {
    expect(introspectionFromSchema(generated.schema)).toHaveProperty("__schema.types");
    expect(printType(generated.schema.getType("Query")!)).toContain(
      "unwritten(o: JSON, i: IntervalInput, f: Float, n: Int): String",
    );
  });

  test("that GraphQL cannot call is omitted", () => {
    const all = [...fieldNames("Query"), ...fieldNames("Mutation")];
    expect(all.filter((name) => ["anyOne", "vary", "proceed", "act"].includes(name))).toEqual([]);
  });
});

describe("deprecated fields and values have their reasons", () => {
  test.each([
    ["a column", "News", '@deprecated(reason: "Read the text.")'],
    ["a value of an enum", "Mood", '_1st @deprecated(reason: "Use %.")'],
    [
      "a function, and an argument of it",
      "Query",
      'b: Int = 5 @deprecated(reason: "Add once more.")): Int @deprecated(reason: "Count yourself.")',
    ],
    ["a mutation", "Mutation", '@deprecated(reason: "It does nothing.")'],
  ])("%s", (_, type, text) => {
    expect(printType(generated.schema.getType(type)!)).toContain(text);
  });
});
