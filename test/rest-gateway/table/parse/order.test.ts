import { describe, expect, test } from "vitest";
import type { OrderTerm } from "../../../../planner/intent/intent.ts";
import { parseOrder } from "../../../../rest-gateway/table/parse/select.ts";
import { complaintOf, parseErrorOf } from "./parse-error.ts";

function term(name: string, more: Partial<OrderTerm> = {}): OrderTerm {
  return { field: { name, path: [] }, relation: null, direction: null, nulls: null, ...more };
}

describe("order", () => {
  test.each<[string, OrderTerm[]]>([
    ["name", [term("name")]],
    ["name.asc", [term("name", { direction: "asc" })]],
    ["name.desc.nullsfirst", [term("name", { direction: "desc", nulls: "first" })]],
    ["name.nullslast", [term("name", { nulls: "last" })]],
    [
      "a.desc,b,c.asc.nullslast",
      [term("a", { direction: "desc" }), term("b"), term("c", { direction: "asc", nulls: "last" })],
    ],
    ["a, b.desc", [term("a"), term("b", { direction: "desc" })]],
    ['"a.b","c,d".desc', [term("a.b"), term("c,d", { direction: "desc" })]],
    ["my name.desc", [term("my name", { direction: "desc" })]],
    ["clients(name)", [term("name", { relation: "clients" })]],
    [
      "clients(name).desc.nullsfirst,id",
      [term("name", { relation: "clients", direction: "desc", nulls: "first" }), term("id")],
    ],
    ['"my clients"( "a b" ).asc', [term("a b", { relation: "my clients", direction: "asc" })]],
    [
      "clients(data->a).desc",
      [
        term("data", {
          relation: "clients",
          direction: "desc",
          field: { name: "data", path: [{ arrow: "->", key: "a" }] },
        }),
      ],
    ],
    [
      "data->0->>key.asc.nullslast",
      [
        term("data", {
          direction: "asc",
          nulls: "last",
          field: {
            name: "data",
            path: [
              { arrow: "->", key: 0 },
              { arrow: "->>", key: "key" },
            ],
          },
        }),
      ],
    ],
  ])("%s is parsed", (text, terms) => {
    expect(parseOrder(text)).toEqual(terms);
  });

  test.each([
    ["", "column 1: unexpected end of input expecting field name (* or [a..z0..9_$])"],
    ["id,", "column 4: unexpected end of input expecting field name (* or [a..z0..9_$])"],
    ["id.ac", `column 4: unexpected "c" expecting "asc", "desc", "nullsfirst" or "nullslast"`],
    ["id.descc", `column 8: unexpected 'c' expecting delimiter (.), "," or end of input`],
    ["id.nulsfist", `column 4: unexpected "n" expecting "asc", "desc", "nullsfirst" or "nullslast"`],
    ["id.nullslasttt", `column 13: unexpected 't' expecting "," or end of input`],
    ["id.smth34", `column 4: unexpected "s" expecting "asc", "desc", "nullsfirst" or "nullslast"`],
    ["id.asc.nlsfst", `column 8: unexpected "l" expecting "nullsfirst" or "nullslast"`],
    ["id.asc.nullslasttt", `column 17: unexpected 't' expecting "," or end of input`],
    [
      "clients(name,id)",
      `column 8: unexpected '(' expecting letter, digit, "-", "->>", "->", delimiter (.), "," or end of input`,
    ],
    ["id)", `column 3: unexpected ')' expecting letter, digit, "-", "->>", "->", delimiter (.), "," or end of input`],
  ])("%s is refused", (text, complaint) => {
    expect(complaintOf(() => parseOrder(text))).toBe(complaint);
  });

  test("the error contains the text", () => {
    expect(parseErrorOf(() => parseOrder("id.ac"))).toMatchObject({
      status: 400,
      code: "PGRST100",
      message: '"failed to parse order (id.ac)" (line 1, column 4)',
    });
  });
});
