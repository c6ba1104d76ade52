import type { DescribedArgument, DescribedColumn } from "../api/catalog.ts";

const NUMBERS = /^(smallint|integer|bigint|numeric|real|double precision|money)/;
const SAMPLES: readonly (readonly [RegExp, unknown])[] = [
  [/\[\]$/, []],
  [NUMBERS, 1],
  [/^boolean/, true],
  [/^jsonb?$/, {}],
  [/^uuid$/, "00000000-0000-4000-8000-000000000000"],
  [/^timestamp/, "2030-01-31T12:00:00Z"],
  [/^date$/, "2030-01-31"],
  [/^time/, "12:00:00"],
  [/^interval/, "1 day"],
  [/^bytea$/, "\\x00"],
  [/^inet|^cidr/, "192.0.2.1"],
];

/** A value of the type, to be edited. */
export function sampleOfType(type: string, labels: readonly string[] | null = null): unknown {
  const [, sample = labels?.[0] ?? "text"] = SAMPLES.find(([pattern]) => pattern.test(type)) ?? [];
  return sample;
}

/** The columns that an insert needs; the first writable ones if it needs none. */
export function sampleRow(columns: readonly DescribedColumn[]): Record<string, unknown> {
  const writable = columns.filter(({ generated, identity }) => generated === null && identity !== "always");
  const required = writable.filter((column) => !column.nullable && column.default === null && column.identity === null);
  const chosen = required.length > 0 ? required : writable.filter(({ identity }) => identity === null).slice(0, 2);
  return Object.fromEntries(chosen.map((column) => [column.name, sampleOfColumn(column)]));
}

/** One column that is not part of the key. */
export function sampleChange(columns: readonly DescribedColumn[], key: readonly string[]): Record<string, unknown> {
  const column = columns.find(
    ({ name, generated, identity }) => !key.includes(name) && generated === null && identity === null,
  );
  return column ? { [column.name]: sampleOfColumn(column) } : {};
}

/** Arguments without a default. */
export function sampleArguments(inputs: readonly DescribedArgument[]): Record<string, unknown> {
  const needed = inputs.filter((argument) => argument.default === null && argument.name !== null);
  return Object.fromEntries(needed.map(({ name, type }) => [name!, sampleOfType(type)]));
}

function sampleOfColumn({ base_type, labels, type_kind }: DescribedColumn): unknown {
  return type_kind === "array" ? [] : sampleOfType(base_type, labels);
}
