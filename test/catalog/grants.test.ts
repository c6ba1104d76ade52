import { describe, expect, test } from "vitest";
import { makeGrantsParser } from "../../catalog/grants.ts";

const parse = makeGrantsParser();
const grants = (acl: string) => [...parse(acl)].map(([grantee, privileges]) => [grantee, [...privileges]]);

describe("lists of grants", () => {
  test.each([
    [
      "postgres=arwdDxtm/postgres",
      [["postgres", ["insert", "select", "update", "delete", "truncate", "references", "trigger", "maintain"]]],
    ],
    ["=r/postgres", [["public", ["select"]]]],
    [
      "a_b=U/o\nc=UC/o",
      [
        ["a_b", ["usage"]],
        ["c", ["usage", "create"]],
      ],
    ],
    ["x=X*/o", [["x", ["execute"]]]],
    ["x=r/o\nx=a/p", [["x", ["select", "insert"]]]],
    [
      '"odd ""role""=x/y"=r/"o = /\np"\n"b c"=a/o',
      [
        ['odd "role"=x/y', ["select"]],
        ["b c", ["insert"]],
      ],
    ],
    ["", []],
  ])("%j", (acl, expected) => {
    expect(grants(acl)).toEqual(expected);
  });

  test("an absent list grants nothing", () => {
    expect(parse(null).size).toBe(0);
  });

  test("are shared by objects with the same list", () => {
    expect(parse("x=r/o")).toBe(parse("x=r/o"));
  });
});
