import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CsvReader, CsvSyntaxError, detectDelimiter } from "../../../../studio/tables/transfer/csv-reader.ts";
import { writeCsvRecord } from "../../../../studio/tables/transfer/csv-writer.ts";
import "../../../property-runs.ts";

const PLAIN = { forSpreadsheets: false };

function readAll(pieces: readonly string[], delimiter: "," | ";" | "\t" = ",") {
  const reader = new CsvReader(delimiter);
  return [...pieces.flatMap((piece) => reader.read(piece)), ...reader.end()];
}

const cellsOf = (...pieces: string[]) => readAll(pieces).map(({ cells }) => cells);

/** Cuts a text where the numbers say. */
function cut(text: string, places: readonly number[]): string[] {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].sort((one, other) => one - other);
  return [...ends, text.length].map((end, index) => text.slice(ends[index - 1] ?? 0, end));
}

describe("the CSV reader", () => {
  test("tells an empty cell, which is null, from an empty string", () => {
    expect(cellsOf('a,,"",d\n')).toEqual([["a", null, "", "d"]]);
  });

  test.each(["\n", "\r\n", "\r"])("accepts lines that end with %j, and numbers them", (lineEnd) => {
    const text = ["a,b", '"x', 'y",2', "", "3"].join(lineEnd);
    expect(readAll([text])).toEqual([
      { line: 1, cells: ["a", "b"] },
      { line: 2, cells: [`x${lineEnd}y`, "2"] },
      { line: 4, cells: [null] },
      { line: 5, cells: ["3"] },
    ]);
  });

  test("skips a byte order mark", () => {
    expect(cellsOf("\uFEFFid,a")).toEqual([["id", "a"]]);
  });

  test("reads quotes that are doubled, and quotes within a cell that has none around it", () => {
    expect(cellsOf('"say ""hi""",5" pipe\n')).toEqual([['say "hi"', '5" pipe']]);
  });

  test("names the line of a quote that is not closed", () => {
    const error = (() => {
      try {
        readAll(['a\nb,"c\nd\n']);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(CsvSyntaxError);
    expect(error).toMatchObject({ line: 2, reason: "unclosedQuote" });
  });

  test("names the line of text behind a closing quote", () => {
    expect(() => readAll(['a\n"b"c\n'])).toThrow(expect.objectContaining({ line: 2, reason: "textAfterQuote" }));
  });

  test("reads what the writer wrote, wherever the text is cut", () => {
    const cell = fc.option(
      fc.oneof(fc.string({ unit: "grapheme" }), fc.stringMatching(/^[",;\t\r\n =a\uFEFF\\']{0,6}$/)),
      { nil: null },
    );
    const table = fc
      .integer({ min: 1, max: 5 })
      .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width }), { maxLength: 6 }));
    fc.assert(
      fc.property(table, fc.array(fc.nat(), { maxLength: 5 }), (rows, places) => {
        const text = rows.map((row) => writeCsvRecord(row, PLAIN)).join("");
        expect(readAll(cut(text, places)).map(({ cells }) => cells)).toEqual(rows);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the delimiter", () => {
  test.each([
    ["a,b,c\n1;2;3;4;5", ","],
    ["a;b\n", ";"],
    ["a\tb\n", "\t"],
    ['"x,y,z";b', ";"],
    ["one", ","],
  ])("of %j is detected", (text, delimiter) => {
    expect(detectDelimiter(text)).toBe(delimiter);
  });
});

describe("the CSV writer", () => {
  test("leaves values as they are", () => {
    expect(writeCsvRecord(["=1+1", "-5", null, "", 'a"b'], PLAIN)).toBe('=1+1,-5,,"","a""b"\r\n');
  });

  test.each(["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])(
    "protects %j for a spreadsheet if that was chosen",
    (cell) => {
      const [[written]] = cellsOf(writeCsvRecord([cell], { forSpreadsheets: true })) as [[string]];
      expect(written).toBe(`'${cell}`);
    },
  );

  test("protects nothing that is no formula", () => {
    expect(writeCsvRecord(["a=1", "5", "<b>"], { forSpreadsheets: true })).toBe("a=1,5,<b>\r\n");
  });
});
