import { describe, expect, test } from "vitest";
import type { Intent, ResponseFormat } from "../../../planner/intent/intent.ts";
import type { ApiError, ErrorKind } from "../../../runtime/errors.ts";
import type { FixtureOptions } from "../fixture-database.ts";
import {
  aggregate,
  at,
  call,
  column,
  columns,
  compare,
  eq,
  everyColumn,
  filter,
  insert,
  isNull,
  post,
  read,
  relation,
  remove,
  term,
  update,
} from "../intents.ts";
import { planIntent } from "../planner.ts";

const OBJECT: ResponseFormat = { kind: "object", type: "application/vnd.pgrst.object+json", nulls: "kept" };
const csv: ResponseFormat = { kind: "media", type: "text/csv" };

function refusal(intent: Intent, options?: FixtureOptions): ApiError {
  try {
    planIntent(intent, options);
  } catch (error) {
    return error as ApiError;
  }
  throw new Error("It was planned");
}

describe("a request is refused", () => {
  const merge = { resolution: "merge", onConflict: null } as const;
  const put = (parts: Parameters<typeof insert>[2], row: object = { code: "one", name: "x" }) =>
    insert("keyed", row, parts, { single: true, upsert: merge });

  test.each<[string, Intent, ErrorKind, string, FixtureOptions?]>([
    ["a table that there is not", read("workz"), "notFound", "PGRST205"],
    ["a table of a schema that is not served", read("vault", {}, { schema: "private" }), "notFound", "PGRST205"],
    ["a partition", read("visits_2024"), "notFound", "PGRST205"],
    [
      "a filter on what is not embedded",
      read("works", { conditions: [at("artists", eq("id", "1"))] }),
      "invalid",
      "PGRST108",
    ],
    ["an order on it", read("works", { orders: [at("artists", [term("id")])] }), "invalid", "PGRST108"],
    ["a window on it", read("works", { ranges: [at("artists", { offset: 0, limit: 1 })] }), "invalid", "PGRST108"],
    [
      "an order by what is not embedded",
      read("works", { order: [term("id", { relation: "artists" })] }),
      "invalid",
      "PGRST108",
    ],
    [
      "an order by a relation of many rows",
      read("artists", { select: [relation("works", columns("id"))], order: [term("id", { relation: "works" })] }),
      "invalid",
      "PGRST118",
    ],
    [
      "an operator on an embedded relation",
      read("works", { select: [relation("artists", [])], where: [eq("artists", "1")] }),
      "invalid",
      "PGRST120",
    ],
    [
      "aggregates where they are switched off",
      read("works", { select: [aggregate("count")] }),
      "invalid",
      "PGRST123",
      { aggregates: false },
    ],
    [
      "aggregates in an embedded relation, too",
      read("artists", { select: [relation("works", [aggregate("max", "year")])] }),
      "invalid",
      "PGRST123",
      { aggregates: false },
    ],
    [
      "aggregates in a spread of many rows",
      read("artists", { select: [relation("works", [aggregate("max", "year")], { spread: true })] }),
      "invalid",
      "PGRST127",
    ],
    ["a column to write that there is not", insert("works", { nothing: 1 }), "invalid", "PGRST204"],
    [
      "a column to set that there is not",
      update("works", { shouted: 1 }, { where: [eq("id", "1")] }),
      "invalid",
      "PGRST204",
    ],
    ["PUT without conditions", put({}), "notAllowed", "PGRST105"],
    ["PUT by another column", put({ where: [eq("name", "x")] }), "notAllowed", "PGRST105"],
    [
      "PUT by the key and another column",
      put({ where: [eq("code", "one"), eq("name", "x")] }),
      "notAllowed",
      "PGRST105",
    ],
    ["PUT by another operator", put({ where: [compare("code", "gt", "one")] }), "notAllowed", "PGRST105"],
    ["PUT by any of several", put({ where: [compare("code", "eq", "{one}", "any")] }), "notAllowed", "PGRST105"],
    ["PUT by what is not equal", put({ where: [{ ...eq("code", "one"), negated: true }] }), "notAllowed", "PGRST105"],
    [
      "PUT by a tree",
      put({ where: [{ kind: "and", negated: false, conditions: [eq("code", "one")] }] }),
      "notAllowed",
      "PGRST105",
    ],
    [
      "PUT to a table without a key",
      insert("keyless", { a: 1 }, { where: [eq("a", "1")] }, { single: true }),
      "notAllowed",
      "PGRST105",
    ],
    ["PUT with a window", put({ where: [eq("code", "one")], window: { offset: 0, limit: 1 } }), "invalid", "PGRST114"],
    ["PUT of a row without its key", put({ where: [eq("code", "one")] }, { name: "x" }), "invalid", "PGRST115"],
    ["to change all rows", update("works", { year: 1 }), "invalid", "21000"],
    ["to delete all rows", remove("works"), "invalid", "21000"],
    [
      "to delete all rows when only what comes back is filtered",
      remove("works", { select: [relation("artists", [])], conditions: [at("artists", eq("id", "1"))] }),
      "invalid",
      "21000",
    ],
    ["a limit on one row given back", post("add", { a: 1, b: 2 }), "invalid", "PGRST128", { maxAffected: 1 }],
    [
      "a media type that cannot be made",
      read("works"),
      "notAcceptable",
      "PGRST107",
      { formats: [{ kind: "media", type: "text/xml" }] },
    ],
    [
      "a plan where that is switched off",
      read("works"),
      "notAcceptable",
      "PGRST107",
      { explainEnabled: false, formats: [{ kind: "plan", type: "x/plan", of: csv, as: "json", options: [] }] },
    ],
    ["a name with a zero byte", read("works", { select: [column("a\0b")] }), "invalid", "22021"],
  ])("%s", (_title, intent, kind, code, options) => {
    expect(refusal(intent, options)).toMatchObject({ kind, code });
  });

  test("with PostgREST's message", () => {
    expect(refusal(read("workz"))).toMatchObject({
      message: "Could not find the table 'api.workz' in the schema cache",
      hint: "Perhaps you meant the table 'api.works'",
    });
    expect(refusal(read("works", { conditions: [at("artists", eq("id", "1"))] }))).toMatchObject({
      message: "'artists' is not an embedded resource in this request",
      hint: "Verify that 'artists' is included in the 'select' query parameter.",
    });
    expect(
      refusal(read("artists", { select: [relation("works", [])], order: [term("id", { relation: "works" })] })),
    ).toMatchObject({
      message: "A related order on 'works' is not possible",
      details: "'artists' and 'works' do not form a many-to-one or one-to-one relationship",
    });
    expect(refusal(insert("works", { nothing: 1 })).message).toBe(
      "Could not find the 'nothing' column of 'works' in the schema cache",
    );
    expect(refusal(remove("works")).message).toBe("DELETE requires a WHERE clause");
  });

  test("without a hint to a table that the caller may not see", () => {
    expect(refusal(read("closedd"), { role: "authenticated" }).hint).toBe("Perhaps you meant the table 'api.closed'");
    expect(refusal(read("closedd")).hint).toBeNull();
    // A right to one column is a right to know of the table.
    expect(refusal(read("half_opem")).hint).toBe("Perhaps you meant the table 'api.half_open'");
  });

  test("by the real name of an aliased relation, unless that is allowed", () => {
    const intent = read("works", {
      select: [relation("artists", [], { alias: "maker" })],
      conditions: [at("artists", eq("id", "1"))],
    });
    expect(() => planIntent(intent)).not.toThrow();
    expect(refusal(intent, { legacyTargetNames: false })).toMatchObject({
      code: "PGRST108",
      details: "Target names are not allowed in filters if they have an alias",
      hint: "Change 'artists' to 'maker' in filters, orders or limits.",
    });
  });
});

describe("a plan contains", () => {
  test("that a read-only statement may not write", () => {
    expect(planIntent(read("works")).readOnly).toBe(true);
    expect(planIntent(insert("works", { title: "x" })).readOnly).toBe(false);
    expect(planIntent(post("write_item", { name: "x" })).readOnly).toBe(false);
    expect(planIntent(call("write_item", { name: "x" })).readOnly).toBe(true);
    expect(planIntent(post("all_works", {})).readOnly).toBe(true);
  });

  test("the checks that roll it back", () => {
    const guards = (intent: Intent, options: FixtureOptions) =>
      planIntent(intent, options).guards.map(({ code }) => code);
    const one = { formats: [OBJECT] };
    expect(guards(update("works", { year: 1 }, { where: [eq("id", "1")] }), one)).toEqual(["PGRST116"]);
    expect(guards(remove("works", { where: [eq("id", "1")] }), { ...one, maxAffected: 3 })).toEqual([
      "PGRST116",
      "PGRST124",
    ]);
    expect(guards(insert("works", { title: "x" }), { maxAffected: 3 })).toEqual([]);
    expect(guards(insert("keyed", { code: "a" }, { where: [eq("code", "a")] }, { single: true }), one)).toEqual([
      "PGRST115",
    ]);
    expect(guards(post("write_items", { names: [] }), one)).toEqual(["PGRST116"]);
    expect(guards(read("works"), one)).toEqual([]);
  });

  test("a count of only those rows that the page does not show", () => {
    const total = (intent: Intent, maxRows: number | null = null) => planIntent(intent, { maxRows }).total;
    expect(total(read("works"))).toEqual({ kind: "none" });
    expect(total(read("works", {}, { count: "exact" }))).toEqual({ kind: "page" });
    expect(total(read("works", { window: { offset: 1, limit: null } }, { count: "exact" }))).toEqual({
      kind: "counted",
      max: null,
    });
    expect(total(read("works", {}, { count: "exact" }), 10)).toEqual({ kind: "counted", max: null });
    expect(total(read("works", {}, { count: "estimated" }), 10)).toEqual({ kind: "counted", max: 11 });
    expect(total(read("works", {}, { count: "planned" }), 10)).toEqual({ kind: "none" });
    expect(total(update("works", { year: 1 }, { where: [eq("id", "1")] }, { count: "exact" }), 10)).toEqual({
      kind: "page",
    });
    expect(total(call("all_works", {}, {}, { count: "estimated" }), 10)).toEqual({ kind: "counted", max: null });
  });

  test("the first media type that it can produce", () => {
    const made = (intent: Intent, ...types: string[]) =>
      planIntent(intent, { formats: types.map((type) => ({ kind: "media", type })) }).format.type;
    expect(made(read("works"), "*/*")).toBe("application/json");
    expect(made(read("works"), "text/xml", "text/csv", "*/*")).toBe("text/csv");
    expect(made(read("works"), "application/vnd.museum.label")).toBe("application/vnd.museum.label");
    expect(made(read("works"), "text/plain")).toBe("text/plain");
    expect(made(call("page"), "text/html")).toBe("text/html");
    expect(made(call("anything"), "image/jpeg")).toBe("application/octet-stream");
  });

  test("a table's own format only if all its columns are selected", () => {
    const formats = [{ kind: "media", type: "application/vnd.museum.label" } as const];
    expect(refusal(read("works", { select: columns("id") }), { formats }).code).toBe("PGRST107");
    expect(refusal(read("works", { select: [everyColumn(), relation("artists", [])] }), { formats }).code).toBe(
      "PGRST107",
    );
    expect(refusal(read("artists"), { formats }).code).toBe("PGRST107");
  });

  test("no body if the client needs none", () => {
    expect(planIntent(read("works"), { includesBody: false }).body).toEqual({ kind: "none" });
    expect(planIntent(insert("works", { title: "x" }, {}, { returned: "nothing" })).body).toEqual({ kind: "none" });
  });

  test("the location of a new row, by the key of its table", () => {
    const location = (table: string, row: object) => {
      const plan = planIntent(insert(table, row, {}, { returned: "headers" }));
      return plan.kind === "write" ? plan.location : null;
    };
    expect(location("works", { title: "x" })).toEqual(["id"]);
    expect(location("exhibits", { work_id: 1 })).toEqual(["exhibition_id", "work_id"]);
    expect(location("keyless", { a: 1 })).toEqual([]);
    expect(location("work_list", { name: "x" })).toEqual(["number"]);
  });

  test("no conflict target for a table without a key, unless its columns are named", () => {
    const conflict = (table: string, onConflict: string[] | null) => {
      const plan = planIntent(insert(table, { a: 1 }, {}, { upsert: { resolution: "ignore", onConflict } }));
      return plan.kind === "write" && plan.change.kind === "insert" ? plan.change.conflict?.columns : null;
    };
    expect(conflict("keyless", null)).toBeUndefined();
    expect(conflict("keyless", ["a"])).toEqual(["a"]);
    expect(conflict("defaults", null)).toEqual(["id"]);
  });

  test("no values", () => {
    const secret = "not in the plan";
    const intents: Intent[] = [
      read("works", {
        where: [eq("title", secret), filter("title", { kind: "in", values: [secret] }), isNull("year")],
      }),
      insert("works", { title: secret }),
      post("echo_json", { secret }),
      call("greet", { name: secret }),
    ];
    for (const intent of intents) expect(JSON.stringify(planIntent(intent))).not.toContain(secret);
  });
});
