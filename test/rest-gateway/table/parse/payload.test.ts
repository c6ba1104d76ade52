import { describe, expect, test } from "vitest";
import { parseArgument, parseRows } from "../../../../rest-gateway/table/parse/body.ts";
import { contentOf } from "./content.ts";
import { parseErrorOf } from "./parse-error.ts";

type Body = { type?: string; body: string | Buffer; columns?: string[] };
const content = ({ type, body }: Body) => contentOf(body, type);

function rows(body: Body) {
  const { json, valueSpans: _, ...rest } = parseRows(content(body), body.columns ?? null);
  return { json: json.toString(), ...rest };
}

function argument(body: Body) {
  return parseArgument(content(body), body.columns ?? null);
}

const FORM = "application/x-www-form-urlencoded";

describe("rows to write", () => {
  test.each([
    [{ body: '{"b":1,"a":2}' }, { json: '{"b":1,"a":2}', columns: ["a", "b"], isArray: false }],
    [{ body: ' [{"a":1},{"a":2}]' }, { json: ' [{"a":1},{"a":2}]', columns: ["a"], isArray: true }],
    [{ body: "{}" }, { json: "{}", columns: [], isArray: false }],
    [{ body: "[]" }, { json: "[]", columns: [], isArray: true }],
    [{ body: "[{},{}]" }, { json: "[{},{}]", columns: [], isArray: true }],
    [{ body: "5" }, { json: "[]", columns: [], isArray: true }],
    [
      { body: '{"a":1}', type: "application/vnd.pgrst.array+json" },
      { json: '{"a":1}', columns: ["a"], isArray: false },
    ],
    [
      { body: "a,b\n1,NULL", type: "text/csv" },
      { json: '[{"a":"1","b":null}]', columns: ["a", "b"], isArray: true },
    ],
    [
      { body: "b=x+y&a=%C3%A9&a=2", type: FORM },
      { json: '{"b":"x y","a":"2"}', columns: ["a", "b"], isArray: false },
    ],
    [
      { body: "a&&b=1&", type: FORM },
      { json: '{"a":"","b":"1"}', columns: ["a", "b"], isArray: false },
    ],
    [
      { body: '{"a":1}', type: FORM },
      { json: '{"{\\"a\\":1}":""}', columns: ['{"a":1}'], isArray: false },
    ],
  ])("%j", (body, payload) => {
    expect(rows(body)).toEqual(payload);
  });

  test("JSON keeps the client's bytes", () => {
    const read = content({ body: '{"a": 1.0}' });
    expect(parseRows(read, null).json).toBe(read.body);
    expect(parseRows(read, ["a"]).json).toBe(read.body);
  });

  test("JSON whose columns the client names is not validated here", () => {
    expect(rows({ body: ' [{"a":1},{"b"', columns: ["b", "a", "b"] })).toEqual({
      json: ' [{"a":1},{"b"',
      columns: ["a", "b"],
      isArray: true,
    });
    expect(rows({ body: ' {"a":1', columns: ["a"] })).toEqual({ json: ' {"a":1', columns: ["a"], isArray: false });
  });

  test.each([
    ["what it names itself", null, true],
    ["fewer", ["a"], true],
    ["others", ["a", "c"], false],
  ])("positions of values are returned when the client names %s", (_which, columns, isTold) => {
    const { valueSpans: grid } = parseRows(content({ body: '[{"b":1,"a":2},{"b":3,"a":4}]' }), columns);
    expect(grid).toEqual(
      isTold ? { keys: ["b", "a"], spans: Uint32Array.of(6, 7, 12, 13, 20, 21, 26, 27) } : undefined,
    );
  });

  test.each(["", "5", "null", '"a"'])("a body that does not look like objects is left to Postgres: %j", (body) => {
    expect(rows({ body, columns: ["a"] })).toEqual({ json: body, columns: ["a"], isArray: true });
  });

  test.each([
    [{ body: "" }, "Empty or invalid json"],
    [{ body: "}{ x = 2" }, "Empty or invalid json"],
    [{ body: '[{"a":1},{"b":2}' }, "Empty or invalid json"],
    [{ body: '[{"a":1},{"b":2}]' }, "All object keys must match"],
    [{ body: '[{"a":1},5]' }, "All object keys must match"],
    [{ body: "[1]" }, "All object keys must match"],
    [{ body: "a,b\n1", type: "text/csv" }, "All lines must have same number of fields"],
    [{ body: "x", type: "text/plain" }, "Content-Type not acceptable: text/plain"],
    [{ body: "x", type: "image/png" }, "Content-Type not acceptable: image/png"],
    [
      { body: "{}", type: "application/vnd.pgrst.object" },
      "Content-Type not acceptable: application/vnd.pgrst.object+json",
    ],
  ])("%j is refused", (body, message) => {
    expect(parseErrorOf(() => rows(body))).toEqual({
      status: 400,
      code: "PGRST102",
      message,
      details: null,
      hint: null,
    });
  });

  test.each(["text/csv", FORM])("%s that is not UTF-8 is refused", (type) => {
    expect(parseErrorOf(() => rows({ body: Buffer.from([0x61, 0x0a, 0xff]), type }))).toMatchObject({ code: "22021" });
  });
});

describe("arguments of a function called by POST", () => {
  const json = (body: string, names: string[] | null) => ({ kind: "json", body: Buffer.from(body), names });

  test.each([
    [{ body: '{"b":1,"a":2}' }, json('{"b":1,"a":2}', ["a", "b"])],
    [{ body: "" }, json("{}", [])],
    [{ body: '[{"a":1},{"a":2}]' }, json('[{"a":1},{"a":2}]', ["a"])],
    [{ body: "[1,2]" }, json("[1,2]", null)],
    [{ body: '[{"a":1},{"b":2}]' }, json('[{"a":1},{"b":2}]', null)],
    [{ body: "5" }, json("5", null)],
    [{ body: '{"x":1}', columns: ["b", "a"] }, json('{"x":1}', ["a", "b"])],
    [
      { body: "a\n1", type: "text/csv" },
      { ...json('[{"a":"1"}]', ["a"]), isCsv: true },
    ],
    [
      { body: "v=1&v=2&a=b+c", type: FORM },
      {
        kind: "query",
        values: [
          ["v", "1"],
          ["v", "2"],
          ["a", "b c"],
        ],
      },
    ],
    [
      { body: '{"a":1}', type: FORM },
      { kind: "query", values: [['{"a":1}', ""]] },
    ],
    [
      { body: "x", type: "text/plain; charset=utf-8" },
      { kind: "raw", body: Buffer.from("x"), type: "text" },
    ],
    [
      { body: "<x/>", type: "text/xml" },
      { kind: "raw", body: Buffer.from("<x/>"), type: "xml" },
    ],
    [
      { body: "\0\xff", type: "application/octet-stream" },
      { kind: "raw", body: Buffer.from("\0\xff"), type: "bytea" },
    ],
  ])("%j", (body, expected) => {
    expect(argument(body)).toEqual(expected);
  });

  test.each([
    [{ body: "{" }, "Empty or invalid json"],
    [{ body: "x", type: "image/png" }, "Content-Type not acceptable: image/png"],
  ])("%j is refused", (body, message) => {
    expect(parseErrorOf(() => argument(body))).toMatchObject({ status: 400, code: "PGRST102", message });
  });
});
