import { describe, expect, test } from "vitest";
import { parseFilter } from "../../../realtime/changes/row-filter.ts";

const condition = (column: string, operator: string, values: string[], negated = false) => ({
  column,
  negated,
  operator,
  values,
});

describe("a filter", () => {
  test.each([
    ["", []],
    ["  ", []],
    ["id=eq.1", [condition("id", "eq", ["1"])]],
    ["id=eq.", [condition("id", "eq", [""])]],
    ["body=eq.a=b.c", [condition("body", "eq", ["a=b.c"])]],
    [" id=gt.1 , id=lte.5 ", [condition("id", "gt", ["1 "]), condition("id", "lte", ["5 "])]],
    ["t=eq. sp", [condition("t", "eq", [" sp"])]],
    ["t=eq.sp ,u=like. ", [condition("t", "eq", ["sp "]), condition("u", "like", [" "])]],
    ['t=eq. " sp" ', [condition("t", "eq", [" sp"])]],
    ["t=in.( a, b ,c ) ", [condition("t", "in", ["a", " b ", "c "])]],
    ["t=is. null ", [condition("t", "is", ["null"])]],
    ['name=in.(a,"b, c","say \\"yes\\"")', [condition("name", "in", ["a", "b, c", 'say "yes"'])]],
    ['name=eq."a, b"', [condition("name", "eq", ["a, b"])]],
    ['name=in.("a, b", "c, d")', [condition("name", "in", ["a, b", "c, d"])]],
    ['name=eq.5" tall,id=gt.0', [condition("name", "eq", ['5" tall']), condition("id", "gt", ["0"])]],
    ['name=eq."a"b",id=gt.0', [condition("name", "eq", ['"a"b"']), condition("id", "gt", ["0"])]],
    ["name=eq.a),id=gt.0", [condition("name", "eq", ["a)"]), condition("id", "gt", ["0"])]],
    ["name=not.like.%x%", [condition("name", "like", ["%x%"], true)]],
    ["name=like.a\\\\", [condition("name", "like", ["a\\\\"])]],
    ["name=is.NULL", [condition("name", "is", ["null"])]],
    ["a=isdistinct.null", [condition("a", "is", ["null"], true)]],
    ["a=not.isdistinct.NULL", [condition("a", "is", ["null"])]],
    ["a=not.in.(1,2),b=isdistinct.3", [condition("a", "in", ["1", "2"], true), condition("b", "isdistinct", ["3"])]],
  ])("%j is read", (text, conditions) => expect(parseFilter(text)).toEqual(conditions));

  test.each([
    "id",
    "id=1",
    "id=is.5",
    "id=almost.5",
    "=eq.5",
    " =eq.5",
    "id=in.1,2",
    "id=eq.1,",
    "name=like.a\\",
    'name=not.ilike."a\\\\\\\\\\\\"',
    `id=in.(${Array.from({ length: 101 }, (_, n) => n)})`,
  ])("%j is not", (text) => expect(parseFilter(text)).toBeNull());
});
