import type { SqlColumn, SqlRow } from "#operations/admin-types";

export const CHART_KINDS = ["bar", "line", "area", "scatter"] as const;
export type ChartKind = (typeof CHART_KINDS)[number];

export type ChartChoice = {
  readonly kind: ChartKind;
  /** The index of the column of the horizontal axis. */
  readonly x: number;
  /** The indexes of the number columns that are shown. */
  readonly series: readonly number[];
};

/** A value is null, and has no point, if it is null or no number in the result. */
export type ResultSeries = { readonly name: string; readonly values: readonly (number | null)[] };

export type ChartData = {
  readonly kind: ChartKind;
  readonly x:
    | { readonly type: "number" | "time"; readonly name: string; readonly values: readonly (number | null)[] }
    | { readonly type: "name"; readonly name: string; readonly values: readonly string[] };
  readonly series: readonly ResultSeries[];
};

const MAX_SERIES = 6;

/** Suggests the first column that is no number, or else the first one, against all other numbers; null without numbers. */
export function suggestChart(columns: readonly SqlColumn[], rows: readonly SqlRow[]): ChartChoice | null {
  const indexes = [...columns.keys()];
  const numbers = indexes.filter((index) => isNumeric(columns[index]!));
  const x = indexes.find((index) => !numbers.includes(index)) ?? numbers[0];
  if (x === undefined) return null;
  const series = numbers.filter((index) => index !== x).slice(0, MAX_SERIES);
  if (series.length === 0) return null;
  return {
    kind: suggestKind(
      columns[x]!,
      rows.map((row) => row[x] ?? null),
    ),
    x,
    series,
  };
}

/** Suggests a line for numbers in order. */
function suggestKind({ category }: SqlColumn, values: readonly (string | null)[]): ChartKind {
  if (category === "D") return "line";
  if (category !== "N") return "bar";
  const numbers = values.map(toNumber);
  const isOrdered = numbers.every((value, index) => index === 0 || Number(value) > Number(numbers[index - 1]));
  return isOrdered ? "line" : "scatter";
}

export function isNumeric({ category }: SqlColumn): boolean {
  return category === "N";
}

export function readChartData(
  columns: readonly SqlColumn[],
  rows: readonly SqlRow[],
  { kind, x, series }: ChartChoice,
): ChartData {
  const texts = rows.map((row) => row[x] ?? null);
  const { name, category } = columns[x]!;
  return {
    kind,
    // A bar has a name, whatever its value.
    x:
      kind === "bar" || !(category === "N" || category === "D")
        ? { type: "name", name, values: texts.map((text) => text ?? "null") }
        : { type: category === "N" ? "number" : "time", name, values: texts.map(category === "N" ? toNumber : toTime) },
    series: series.map((index) => ({
      name: columns[index]!.name,
      values: rows.map((row) => toNumber(row[index] ?? null)),
    })),
  };
}

/** Converts a text to a double; a chart needs no more precision. */
function toNumber(text: string | null): number | null {
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Parses Postgres's ISO style: `2026-11-22`, `2026-11-22 14:05:09.123+00`. */
function toTime(text: string | null): number | null {
  const iso = (text ?? "").replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00");
  const time = Date.parse(/^\d{4}-\d\d-\d\d$/.test(iso) ? `${iso}T00:00` : iso);
  return Number.isNaN(time) ? null : time;
}
