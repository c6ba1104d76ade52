import { describe, expect, test } from "vitest";
import { parseColumns, parseLogicPath, parsePath } from "../../../../rest-gateway/table/parse/scanner.ts";
import { parseErrorOf } from "./parse-error.ts";

describe("names of parameters", () => {
  test.each([
    ["id", [], "id"],
    ["clients.name", ["clients"], "name"],
    ["a.b.c-d", ["a", "b"], "c-d"],
    ['"a.b"."c d"', ["a.b"], "c d"],
    ["my name", [], "my name"],
    ["id[]", [], "id"],
  ])("%s is a field", (text, path, name) => {
    expect(parsePath(text)).toEqual({ path, field: { name, path: [] } });
  });

  test("%s leads to a relation and into JSON", () => {
    expect(parsePath("clients.data->a->>0")).toEqual({
      path: ["clients"],
      field: {
        name: "data",
        path: [
          { arrow: "->", key: "a" },
          { arrow: "->>", key: 0 },
        ],
      },
    });
  });

  test.each([
    ["or", [], "or"],
    ["not.and", [], "not.and"],
    ["clients.or", ["clients"], "or"],
    ["clients.not.or", ["clients"], "not.or"],
    ["not.clients.or", ["clients"], "not.or"],
    ["a.b.and", ["a", "b"], "and"],
  ])("%s begins a logic tree", (text, path, operator) => {
    expect(parseLogicPath(text)).toEqual({ path, operator });
  });

  test.each([
    ["", 1, "unexpected end of input expecting field name (* or [a..z0..9_$])"],
    ["a..b", 3, 'unexpected "." expecting field name (* or [a..z0..9_$])'],
    ["!", 1, 'unexpected "!" expecting field name (* or [a..z0..9_$])'],
    ['"a', 3, 'unexpected end of input expecting "\\\\" or "\\""'],
  ])("%s is not a parameter name", (text, column, details) => {
    expect(parseErrorOf(() => parsePath(text))).toEqual({
      status: 400,
      code: "PGRST100",
      message: `"failed to parse tree path (${text})" (line 1, column ${column})`,
      details,
      hint: null,
    });
    expect(parseErrorOf(() => parseLogicPath(text)).message).toMatch(/^"failed to parse logic path /);
  });
});

describe("lists of columns", () => {
  test.each([
    ["id", ["id"]],
    ["id,name", ["id", "name"]],
    ["id , name", ["id", "name"]],
    ['"a,b",c-d, "e\\"f"', ["a,b", "c-d", 'e"f']],
  ])("%s is read", (text, names) => {
    expect(parseColumns("columns", text)).toEqual(names);
  });

  test.each([
    ["", 1],
    ["id,", 4],
    [",id", 1],
    ['"a" b', 5],
  ])("%s is refused", (text, column) => {
    expect(parseErrorOf(() => parseColumns("on_conflict", text))).toMatchObject({
      status: 400,
      code: "PGRST100",
      message: `"failed to parse on_conflict parameter (${text})" (line 1, column ${column})`,
    });
  });
});
