import { describe, expect, test } from "vitest";
import { parseColumns } from "../../../../rest-gateway/table/parse/scanner.ts";
import { parseErrorOf } from "./parse-error.ts";

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
