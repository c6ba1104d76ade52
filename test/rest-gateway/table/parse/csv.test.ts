import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { csvToJson } from "../../../../rest-gateway/table/parse/csv.ts";
import { runToCompletion } from "../../../../runtime/concurrency/stepwise.ts";
import { stepsOf } from "../../../runtime/steps.ts";
import { parseErrorOf } from "./parse-error.ts";

const read = (text: string) => runToCompletion(csvToJson(text));
const rowsOf = (text: string) => JSON.parse(read(text).json.toString());

describe("CSV", () => {
  test.each([
    [
      "id,name\n1,x\n2,y",
      [
        { id: "1", name: "x" },
        { id: "2", name: "y" },
      ],
    ],
    ["id,name\r\n1,x\r\n", [{ id: "1", name: "x" }]],
    ["id\r1\r2", [{ id: "1" }, { id: "2" }]],
    ["id,name\n\n1,x\n\n", [{ id: "1", name: "x" }]],
    ["id,name\n", []],
    ["id,name", []],
    ["a,b\n,", [{ a: "", b: "" }]],
    ["a,b\n NULL ,NULL", [{ a: " NULL ", b: null }]],
    ['a\n"NULL"', [{ a: null }]],
    ['a,b\n"x, ""y""\nz",""', [{ a: 'x, "y"\nz', b: "" }]],
    ['"a,b","c""d"\n1,2', [{ "a,b": "1", 'c"d': "2" }]],
    ["\uFEFFid\n1", [{ id: "1" }]],
    ["é\n名前", [{ é: "名前" }]],
  ])("%j", (text, rows) => {
    expect(rowsOf(text)).toEqual(rows);
  });

  test.each([
    ["", "The first line of the CSV must name the columns"],
    ["a,b\n1", "All lines must have same number of fields"],
    ["a,b\n1,2,3", "All lines must have same number of fields"],
    ['a\n"x', "Misplaced quote in line 2 of the CSV"],
    ['a\nb\n"x"y', "Misplaced quote in line 3 of the CSV"],
    ['a\nx"y"', "Misplaced quote in line 2 of the CSV"],
  ])("%j is refused", (text, message) => {
    expect(parseErrorOf(() => read(text))).toMatchObject({ status: 400, code: "PGRST102", message });
  });

  test("many rows are read in their order", () => {
    const numbers = Array.from({ length: 50_000 }, (_, index) => String(index));
    const rows = rowsOf(`é,n\n${numbers.map((n) => `ü,${n}`).join("\n")}`) as { é: string; n: string }[];
    expect(rows.map(({ n }) => n)).toEqual(numbers);
    expect(rows.every(({ é }) => é === "ü")).toBe(true);
  });

  test("a text that is far larger as JSON than as CSV is refused before it is converted", () => {
    const bomb = `${"n".repeat(1_000_000)}\n${"1\n".repeat(1_000_000)}`;
    expect(parseErrorOf(() => read(bomb))).toMatchObject({ status: 413, code: "PAYLOAD_TOO_LARGE" });
  });

  test.each([
    ["lines", `a,b\n${"1,2\n".repeat(200_000)}`],
    ["empty lines", `a\n${"\n".repeat(1_000_000)}`],
    ["one long field", `a\n${"x".repeat(1_000_000)}`],
    ["one long field of quotes", `a\n"${'""'.repeat(500_000)}"`],
  ])("a long text is read in many steps, so that it delays no other request: %s", (_what, text) => {
    expect(stepsOf(csvToJson(text))).toBeGreaterThan(20);
  });

  test.each([
    ["characters of two halves", "𝄞".repeat(100_000)],
    ["quotes", '"'.repeat(100_001)],
    ["both", '𝄞"'.repeat(50_000)],
    ["quotes between others", `x${'"'.repeat(40_000)}y`.repeat(3)],
  ])("a long field is read as it was written: %s", (_what, value) => {
    for (const shift of ["", "x", "xy"]) {
      expect(rowsOf(`a\n"${(shift + value).replaceAll('"', '""')}"`)).toEqual([{ a: shift + value }]);
    }
  });

  test("may not have more columns than a table", () => {
    const columns = (count: number) => Array.from({ length: count }, (_, index) => `c${index}`).join();
    expect(read(columns(1_600)).columns).toHaveLength(1_600);
    for (const count of [1_601, 1_000_000]) {
      expect(parseErrorOf(() => read(columns(count)))).toMatchObject({ status: 400, code: "PGRST102" });
    }
  });

  test("is read into memory that counts towards a limit", () => {
    let held = 0;
    const { json } = runToCompletion(csvToJson(`a\n${"1\n".repeat(100_000)}`, (bytes) => (held += bytes)));
    expect(held).toBe(json.length);
  });

  test("written rows can be read again", () => {
    const value = fc
      .oneof(fc.string({ unit: "binary" }), fc.constantFrom('"', ",", "\r\n", "NULL ", ""))
      .filter((text) => text !== "NULL");
    const rows = fc.array(fc.tuple(value, value), { maxLength: 4 });
    fc.assert(
      fc.property(rows, fc.constantFrom("\n", "\r\n"), (values, newline) => {
        const lines = ["a,b", ...values.map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join())];
        expect(rowsOf(lines.join(newline))).toEqual(values.map(([a, b]) => ({ a, b })));
      }),
    );
  });
});
