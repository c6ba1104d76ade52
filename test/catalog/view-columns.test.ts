import { describe, expect, test } from "vitest";
import { parseViewColumns } from "../../catalog/view-columns.ts";

const entry = (position: number, table: number, column: number, name = "a", junk = false) =>
  `{TARGETENTRY :expr {VAR :varno 1 :location 7} :resno ${position} :resname ${name} :ressortgroupref 0 ` +
  `:resorigtbl ${table} :resorigcol ${column} :resjunk ${junk}}`;

describe("the query tree of a view", () => {
  test("has the columns that the view selects from tables", () => {
    const list = `(${entry(1, 500, 3)} ${entry(2, 0, 0)} ${entry(3, 501, 1)})`;
    const expected = [
      { position: 1, table: 500, column: 3 },
      { position: 3, table: 501, column: 1 },
    ];
    expect(parseViewColumns(`({QUERY :commandType 1 :rtable <> :targetList ${list} :limitCount <>})`)).toEqual(
      expected,
    );
    expect(parseViewColumns(`${list} :limitCount <>})`)).toEqual(expected);
  });

  test("leaves out columns that exist for ordering alone", () => {
    expect(parseViewColumns(`(${entry(1, 500, 1)} ${entry(2, 500, 2, "b", true)})`)).toHaveLength(1);
  });

  test("ignores queries inside it, before or within the list", () => {
    const inner = `{QUERY :targetList (${entry(1, 999, 9)}) :limitCount <>}`;
    const outer = entry(1, 500, 1).replace("{VAR", `{SUBLINK :subselect ${inner}} {VAR`);
    const tree = `({QUERY :rtable ({RTE :subquery ${inner}}) :targetList (${outer}) :havingQual ${inner}})`;
    expect(parseViewColumns(tree)).toEqual([{ position: 1, table: 500, column: 1 }]);
  });

  test("ignores names that look like structure", () => {
    const name = String.raw`\ :targetList\ \(\{\ :resno\ 7\ \}\)\\`;
    expect(parseViewColumns(`({QUERY :alias ${name} :targetList (${entry(2, 500, 1, name)})})`)).toEqual([
      { position: 2, table: 500, column: 1 },
    ]);
  });

  test("may have no columns at all", () => {
    expect(parseViewColumns("({QUERY :targetList <> :override 0})")).toEqual([]);
    expect(parseViewColumns("<> :override 0})")).toEqual([]);
  });

  test("is rejected if it is incomplete", () => {
    expect(() => parseViewColumns("({QUERY :rtable <>})")).toThrow();
    expect(() => parseViewColumns("({TARGETENTRY :expr {VAR")).toThrow();
  });
});
