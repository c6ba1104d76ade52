import { describe, expect, test } from "vitest";
import { bandAxis, numberAxis, timeAxis } from "../../../studio/components/axis.ts";
import { readChartData, suggestChart } from "../../../studio/sql/chart/chart-data.ts";

const column = (name: string, category: string) => ({ name, type: "", category });

describe("axes", () => {
  test("have round ticks around all values", () => {
    const { ticks, place } = numberAxis([3, 97], [100, 0]);
    expect(ticks).toEqual([0, 20, 40, 60, 80, 100]);
    expect([place(0), place(50), place(100)]).toEqual([100, 50, 0]);
    expect(numberAxis([0.1, 0.3], [0, 1]).ticks).toEqual([0.1, 0.15, 0.2, 0.25, 0.3]);
    expect(numberAxis([-5, 5], [0, 1]).ticks).toContain(0);
    expect([1950, 12_000, 2_500_000].map(numberAxis([1], [0, 1]).format)).toEqual(["1950", "12,000", "2.5M"]);
    expect(numberAxis([7], [0, 1], { includesZero: true }).ticks[0]).toBe(0);
    expect(numberAxis([], [0, 1]).ticks.length).toBeGreaterThan(1);
  });

  test("of times have ticks at round times", () => {
    const day = new Date(2026, 2, 1).getTime();
    const { ticks, format } = timeAxis([day, day + 86_400_000], [0, 100]);
    expect(ticks.map(format)).toEqual(["00:00", "06:00", "12:00", "18:00", "00:00"]);
  });

  test("of many names show some of them", () => {
    const names = Array.from({ length: 100 }, (_, index) => `name ${index}`);
    expect(bandAxis(names, [0, 1000], 10)).toMatchObject({ width: 10, ticks: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90] });
  });
});

describe("the suggested chart", () => {
  test("is bars for names, a line for times and for ordered numbers, points for others", () => {
    const number = column("n", "N");
    expect(suggestChart([number, column("name", "S")], [])).toEqual({ kind: "bar", x: 1, series: [0] });
    expect(suggestChart([column("day", "D"), number, number], [])).toEqual({ kind: "line", x: 0, series: [1, 2] });
    expect(
      suggestChart(
        [number, number],
        [
          ["1", "5"],
          ["2", "5"],
        ],
      )?.kind,
    ).toBe("line");
    expect(
      suggestChart(
        [number, number],
        [
          ["2", "5"],
          ["1", "5"],
        ],
      )?.kind,
    ).toBe("scatter");
    expect(suggestChart([column("name", "S")], [])).toBe(null);
    expect(suggestChart([number], [])).toBe(null);
  });
});

test("values that are no numbers or times are left out", () => {
  const columns = [column("at", "D"), column("n", "N")];
  const rows = [
    ["2026-11-22 14:05:09.5+00", "1.5"],
    ["infinity", "NaN"],
    [null, null],
  ];
  const { x, series } = readChartData(columns, rows, { kind: "line", x: 0, series: [1] });
  expect(x).toEqual({ type: "time", name: "at", values: [Date.UTC(2026, 10, 22, 14, 5, 9, 500), null, null] });
  expect(series).toEqual([{ name: "n", values: [1.5, null, null] }]);
});
