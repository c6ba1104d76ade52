import { describe, expect, test } from "vitest";
import { toCurl } from "../../../studio/try/curl.ts";
import { changesRows, type EditedRequest, parseHeaders } from "../../../studio/try/edited-request.ts";
import { toSupabaseJs } from "../../../studio/try/supabase-js.ts";

const target = { origin: "http://127.0.0.1:3000", token: null };
const request = (given: Partial<EditedRequest>): EditedRequest => ({
  method: "GET",
  path: "/rest/v1/films",
  headers: "",
  body: "",
  ...given,
});
/** The calls after `supabase`. */
const chainOf = (given: Partial<EditedRequest>) =>
  toSupabaseJs(request(given), target)?.split("await supabase")[1]?.replace(/;$/, "").split("\n  .").slice(1);

describe("the request as a command of curl", () => {
  test("has the token as a variable, and as a key where the interface wants one", () => {
    expect(toCurl(request({}), target)).toBe(
      `curl 'http://127.0.0.1:3000/rest/v1/films' \\\n  -H "apikey: $TOKEN" \\\n  -H "Authorization: Bearer $TOKEN"`,
    );
    expect(toCurl(request({ path: "/api/v1/films" }), { ...target, token: "abc" })).toBe(
      `curl 'http://127.0.0.1:3000/api/v1/films' \\\n  -H "Authorization: Bearer abc"`,
    );
  });

  test("quotes everything that shells interpret", () => {
    const command = toCurl(
      request({
        method: "POST",
        path: "/rest/v1/films?a=$(id)",
        headers: "Prefer: a'b",
        body: `{"title": "it's $HOME"}`,
      }),
      target,
    );
    expect(command).toContain(`'http://127.0.0.1:3000/rest/v1/films?a=$(id)'`);
    expect(command).toContain(`-H 'Prefer: a'\\''b'`);
    expect(command).toContain(`-d '{"title": "it'\\''s $HOME"}'`);
  });

  test.each([
    ["GET", "", null],
    ["POST", "{}", null],
    ["POST", "", "-X POST"],
    ["DELETE", "", "-X DELETE"],
    ["PATCH", "{}", "-X PATCH"],
  ])("names the method %s with the body %j only if curl would use another", (method, body, option) => {
    const [, found = null] = /(-X \w+)/.exec(toCurl(request({ method, body }), target)) ?? [];
    expect(found).toBe(option);
  });
});

describe("the request as code for supabase-js", () => {
  test("a read has select, filters, order and range as calls", () => {
    expect(
      chainOf({
        path: "/rest/v1/films?select=id,director(name)&year=gt.2000&title=ilike.*x*&id=in.(1,%22a,b%22)&or=(a.eq.1,b.is.null)&seen=not.is.null&tags=cs.{a}&order=title.desc.nullslast,id&limit=5&offset=10",
        headers: "Prefer: count=exact\nAccept-Profile: shop",
      }),
    ).toEqual([
      'schema("shop")',
      'from("films")',
      'select("id,director(name)", { count: "exact" })',
      'gt("year", 2000)',
      'ilike("title", "*x*")',
      'in("id", [1, "a,b"])',
      'or("a.eq.1,b.is.null")',
      'not("seen", "is", null)',
      'contains("tags", "{a}")',
      'order("title", { ascending: false, nullsFirst: false })',
      'order("id")',
      "range(10, 14)",
    ]);
  });

  test("long numbers stay texts, which are not rounded", () => {
    expect(chainOf({ path: "/rest/v1/films?id=eq.12345678901234567890" })).toContain(
      'eq("id", "12345678901234567890")',
    );
  });

  test.each([
    ["POST", "return=representation", ['from("films")', 'insert({"a":1})', "select()"]],
    ["POST", "resolution=merge-duplicates", ['from("films")', 'upsert({"a":1})']],
    ["PATCH", "return=minimal", ['from("films")', 'update({"a":1})', 'eq("id", 1)']],
    ["DELETE", "return=representation", ['from("films")', "delete()", "select()", 'eq("id", 1)']],
  ])("%s with Prefer: %s", (method, prefer, calls) => {
    const path = method === "POST" ? "/rest/v1/films" : "/rest/v1/films?id=eq.1";
    expect(chainOf({ method, path, headers: `Prefer: ${prefer}`, body: '{"a":1}' })).toEqual(calls);
  });

  test("a function is called with the arguments of the body or of the query string", () => {
    const path = "/rest/v1/rpc/search";
    expect(chainOf({ method: "POST", path, body: '{"keyword":"x"}' })).toEqual(['rpc("search", {"keyword":"x"})']);
    expect(chainOf({ method: "POST", path, body: "{}" })).toEqual(['rpc("search")']);
    expect(chainOf({ path: `${path}?keyword=x&limit=5` })).toEqual([
      'rpc("search", {"keyword":"x"}, { get: true })',
      "limit(5)",
    ]);
  });

  test("there is none for other interfaces", () => {
    expect(toSupabaseJs(request({ path: "/api/v1/films" }), target)).toBeNull();
  });
});

describe("edited requests", () => {
  test("headers are read line by line, and a line that is none is noticed", () => {
    expect(parseHeaders("Prefer: a, b\n\n  X-Y :z ")).toEqual({ Prefer: "a, b", "X-Y": "z" });
    expect(parseHeaders("Prefer")).toBeNull();
    expect(parseHeaders("a b: c")).toBeNull();
  });

  test.each([
    ["GET", false],
    ["POST", false],
    ["PATCH", true],
    ["PUT", true],
    ["DELETE", true],
  ])("%s changes rows that exist: %s", (method, changes) => {
    expect(changesRows({ method })).toBe(changes);
  });
});
