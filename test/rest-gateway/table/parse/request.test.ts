import { describe, expect, test } from "vitest";
import { ALL_COLUMNS } from "../../../../planner/intent/intent.ts";
import { parseTableRequest, type RawTableRequest } from "../../../../rest-gateway/table/parse/request.ts";
import { contentOf } from "./content.ts";
import { parseErrorOf } from "./parse-error.ts";

const deployment = {
  schemas: ["api", "other"],
  rootFunction: null,
  describesItself: true,
  txOverride: true,
  timeZones: new Set(["UTC"]),
};

function parse(line: string, headers: RawTableRequest["headers"] = {}, body = "") {
  const [method = "", url = ""] = line.split(" ");
  const [path = "", rawQuery = ""] = url.split("?");
  const content = contentOf(body, headers["content-type"]);
  return parseTableRequest({ method, path, rawQuery, headers, content }, deployment);
}

function intentOf(line: string, headers: RawTableRequest["headers"] = {}, body = "") {
  const { action } = parse(line, headers, body);
  if (action.kind !== "statement") throw new Error(`It is ${action.kind}`);
  return action.intent;
}

const target = { schema: "api", name: "films" };
const select = [{ kind: "column", field: ALL_COLUMNS, alias: null, cast: null, aggregate: null }];
const selection = { select, conditions: [], orders: [], ranges: [] };

describe("requests for a table", () => {
  test.each(["GET", "HEAD"])("%s reads", (method) => {
    expect(intentOf(`${method} /films`)).toEqual({ kind: "read", target, selection, count: null, page: null });
  });

  test("the query selects what is read, the headers narrow and count it", () => {
    const headers = { range: "0-9", prefer: "count=exact" };
    expect(intentOf("GET /films?select=id&id=gt.5&order=id&limit=50", headers)).toMatchObject({
      kind: "read",
      selection: {
        select: [{ field: { name: "id" } }],
        conditions: [{ path: [] }],
        orders: [{ path: [] }],
        ranges: [{ path: [], value: { offset: 0, limit: 10 } }],
      },
      count: "exact",
    });
  });

  test("POST inserts", () => {
    expect(intentOf("POST /films", {}, '{"id":1}')).toEqual({
      kind: "insert",
      target,
      selection,
      count: null,
      returned: "nothing",
      payload: { json: Buffer.from('{"id":1}'), columns: ["id"], isArray: false },
      missingAsDefault: false,
      upsert: null,
      single: false,
    });
  });

  test("Prefer selects the resolution of conflicts for an insert", () => {
    const headers = { prefer: "return=representation, resolution=ignore-duplicates, missing=default" };
    expect(intentOf("POST /films?columns=id,name&on_conflict=name", headers, "[]")).toMatchObject({
      returned: "rows",
      payload: { columns: ["id", "name"] },
      missingAsDefault: true,
      upsert: { resolution: "ignore", onConflict: ["name"] },
    });
    expect(intentOf("POST /films", { prefer: "resolution=merge-duplicates, return=headers-only" }, "[]")).toMatchObject(
      {
        returned: "headers",
        upsert: { resolution: "merge", onConflict: null },
      },
    );
  });

  test("on_conflict without resolution is not an upsert", () => {
    expect(intentOf("POST /films?on_conflict=id", {}, "[]")).toMatchObject({ upsert: null });
  });

  test("PUT replaces one whole row", () => {
    const headers = { prefer: "missing=default, resolution=ignore-duplicates" };
    expect(intentOf("PUT /films?id=eq.1&columns=x", headers, '{"id":1}')).toMatchObject({
      kind: "insert",
      single: true,
      upsert: { resolution: "merge", onConflict: null },
      missingAsDefault: false,
      payload: { columns: ["id"] },
      selection: { conditions: [{ path: [] }] },
    });
  });

  test("PATCH updates, DELETE deletes", () => {
    expect(intentOf("PATCH /films?id=eq.1&columns=name", { prefer: "missing=default" }, "{}")).toMatchObject({
      kind: "update",
      payload: { columns: ["name"] },
      missingAsDefault: true,
      returned: "nothing",
    });
    expect(intentOf("DELETE /films?id=eq.1", { prefer: "return=representation" }, "ignored")).toEqual({
      kind: "delete",
      target,
      selection: { ...selection, conditions: [expect.objectContaining({ path: [] })] },
      count: null,
      returned: "rows",
    });
  });

  test("OPTIONS requests the allowed methods", () => {
    expect(parse("OPTIONS /films").action).toEqual({ kind: "options", resource: { kind: "table", name: "films" } });
  });
});

describe("a page by cursor", () => {
  test.each(["GET /films", "HEAD /films", "GET /rpc/films", "HEAD /rpc/films"])("%s may request one", (line) => {
    expect(intentOf(`${line}?cursor=&limit=2`)).toMatchObject({ page: { kind: "first" } });
  });

  test.each(["POST /films", "PATCH /films", "PUT /films", "DELETE /films", "POST /rpc/films"])(
    "%s may not request one",
    (line) => {
      expect(parseErrorOf(() => parse(`${line}?cursor=`, {}, "{}"))).toMatchObject({ status: 400, code: "PGRST192" });
    },
  );

  test("a column with the name cursor is a filter in all of them", () => {
    for (const method of ["GET", "PATCH", "DELETE"]) {
      expect(intentOf(`${method} /films?cursor=eq.5`, {}, "{}")).toMatchObject({
        selection: { conditions: [{ value: { field: { name: "cursor" } } }] },
      });
    }
  });
});

describe("an API key in the query", () => {
  test.each([{}, { apikey: "" }, { apikey: "x.y.z" }])("is not a filter, whatever the header: %j", (headers) => {
    expect(parse("GET /films?apikey=x.y.z&id=eq.1", headers).parameters).toEqual([["id", "eq.1"]]);
  });

  test("may be beside a filter with that name, as it may be in its header", () => {
    const filter = [["apikey", "eq.x"]];
    expect(parse("GET /films?apikey=x.y.z&apikey=eq.x").parameters).toEqual(filter);
    expect(parse("GET /films?apikey=eq.x", { apikey: "x.y.z" }).parameters).toEqual(filter);
  });

  test("that differs from the one in the header is refused, and not repeated", () => {
    const refusal = parseErrorOf(() => parse("GET /films?apikey=secret.y.z", { apikey: "x.y.z" }));
    expect(refusal).toMatchObject({ status: 400, code: "PGRST100" });
    expect(JSON.stringify([refusal.message, refusal.details, refusal.hint])).not.toContain("secret");
  });
});

describe("requests for a function", () => {
  test("GET calls it with parameters, and filters its result", () => {
    expect(intentOf("GET /rpc/films?a=1&b=eq.2&select=id")).toMatchObject({
      kind: "call",
      target,
      argument: { kind: "query", values: [["a", "1"]] },
      selection: { conditions: [{ value: { field: { name: "b" } } }] },
      readOnly: true,
    });
    expect(intentOf("HEAD /rpc/films?a=1")).toMatchObject({ kind: "call", readOnly: true });
  });

  test("POST calls it with a body; the parameters are filters", () => {
    expect(intentOf("POST /rpc/films?id=eq.1", { prefer: "count=planned" }, '{"a":1}')).toMatchObject({
      kind: "call",
      argument: { kind: "json", names: ["a"] },
      readOnly: false,
      count: "planned",
    });
    expect(parseErrorOf(() => parse("POST /rpc/films?a=1"))).toMatchObject({ code: "PGRST100" });
  });

  test("OPTIONS requests the allowed methods", () => {
    expect(parse("OPTIONS /rpc/add").action).toEqual({ kind: "options", resource: { kind: "function", name: "add" } });
  });
});

describe("requests for the root", () => {
  test.each(["GET", "HEAD"])("%s requests the OpenAPI document", (method) => {
    expect(parse(`${method} /`).action).toEqual({ kind: "describe", tables: null });
    const tables = parse(`${method} /?table=films&table=a,b`).action;
    expect(tables).toEqual({ kind: "describe", tables: ["films", "a,b"] });
  });

  test("OPTIONS requests the allowed methods", () => {
    expect(parse("OPTIONS /").action).toEqual({ kind: "options", resource: { kind: "root" } });
  });
});

describe("headers", () => {
  test("Accept-Profile names the schema of reads, Content-Profile that of writes", () => {
    const headers = { "accept-profile": "other", "content-profile": "api" };
    for (const method of ["GET", "HEAD", "OPTIONS"])
      expect(parse(`${method} /films`, headers).profile.schema).toBe("other");
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      expect(parse(`${method} /films`, headers, "{}").profile.schema).toBe("api");
    }
    expect(intentOf("GET /films", { "accept-profile": "other" }).target).toEqual({ schema: "other", name: "films" });
  });

  test("Accept, Prefer and the parameters are kept for the response", () => {
    const request = parse("GET /films?b=eq.1&a=eq.2", { accept: "text/csv", prefer: "tx=rollback" });
    expect(request).toMatchObject({
      method: "GET",
      accept: [{ kind: "media", type: "text/csv" }],
      preferences: { tx: "rollback" },
      parameters: [
        ["b", "eq.1"],
        ["a", "eq.2"],
      ],
      profile: { schema: "api", negotiated: true },
    });
  });

  test.each([
    ["GET /a/b?x=1", { "accept-profile": "x" }, "PGRST125"],
    ["FOO /films?x=1", { "accept-profile": "x" }, "PGRST106"],
    ["FOO /films?x=1", {}, "PGRST117"],
    ["PUT /rpc/add", {}, "PGRST101"],
    ["GET /films?x=1&limit=-1", {}, "PGRST100"],
    ["POST /films?limit=-1", {}, "PGRST103"],
    ["PUT /films?limit=1", {}, "PGRST114"],
    ["POST /films", { prefer: "handling=strict, x" }, "PGRST122"],
    ["POST /films", {}, "PGRST102"],
  ])("%s %j is refused with %s", (line, headers, code) => {
    expect(parseErrorOf(() => parse(line, headers)).code).toBe(code);
  });
});
