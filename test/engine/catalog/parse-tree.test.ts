import { describe, expect, test } from "vitest";
import { parseTargets } from "../../../engine/catalog/parse-tree.ts";

const entry = (position: number, table: number, column: number, name = "a", junk = false) =>
  `{TARGETENTRY :expr {VAR :varno 1 :location 7} :resno ${position} :resname ${name} :ressortgroupref 0 ` +
  `:resorigtbl ${table} :resorigcol ${column} :resjunk ${junk}}`;

describe("the query tree of a view", () => {
  test("gives the columns that are taken over from tables", () => {
    const list = `(${entry(1, 500, 3)} ${entry(2, 0, 0)} ${entry(3, 501, 1)})`;
    const expected = [
      { position: 1, table: 500, column: 3 },
      { position: 3, table: 501, column: 1 },
    ];
    expect(parseTargets(`({QUERY :commandType 1 :rtable <> :targetList ${list} :limitCount <>})`)).toEqual(expected);
    expect(parseTargets(`${list} :limitCount <>})`)).toEqual(expected);
  });

  test("leaves out columns that exist for ordering alone", () => {
    expect(parseTargets(`(${entry(1, 500, 1)} ${entry(2, 500, 2, "b", true)})`)).toHaveLength(1);
  });

  test("is not led astray by queries inside it, before or within the list", () => {
    const inner = `{QUERY :targetList (${entry(1, 999, 9)}) :limitCount <>}`;
    const outer = entry(1, 500, 1).replace("{VAR", `{SUBLINK :subselect ${inner}} {VAR`);
    const tree = `({QUERY :rtable ({RTE :subquery ${inner}}) :targetList (${outer}) :havingQual ${inner}})`;
    expect(parseTargets(tree)).toEqual([{ position: 1, table: 500, column: 1 }]);
  });

  test("is not led astray by names that look like structure", () => {
    const name = String.raw`\ :targetList\ \(\{\ :resno\ 7\ \}\)\\`;
    expect(parseTargets(`({QUERY :alias ${name} :targetList (${entry(2, 500, 1, name)})})`)).toEqual([
      { position: 2, table: 500, column: 1 },
    ]);
  });

  test("may have no columns at all", () => {
    expect(parseTargets("({QUERY :targetList <> :override 0})")).toEqual([]);
    expect(parseTargets("<> :override 0})")).toEqual([]);
  });

  test("is refused when it is not whole", () => {
    expect(() => parseTargets("({QUERY :rtable <>})")).toThrow();
    expect(() => parseTargets("({TARGETENTRY :expr {VAR")).toThrow();
  });
});
