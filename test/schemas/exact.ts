/** A value of JSON, with numbers as they are written: two texts of one number differ where their digits do. */
export type Json = null | boolean | string | WrittenNumber | readonly Json[] | { readonly [name: string]: Json };

export class WrittenNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Reviver = (key: string, value: unknown, context: { readonly source: string }) => unknown;

export function parseJson(text: string): Json {
  // TypeScript does not know the third argument yet.
  const parse = JSON.parse as (text: string, reviver: Reviver) => Json;
  return parse(text, (_key, value, { source }) => (typeof value === "number" ? new WrittenNumber(source) : value));
}

/** Returns one text for one value: keys in their order, numbers without zeros that say nothing. */
export function canonical(value: Json | undefined): string {
  if (value === undefined) return "missing";
  if (value instanceof WrittenNumber) return plainNumber(value.text);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value as { readonly [name: string]: Json }).sort(([one], [other]) =>
    one < other ? -1 : 1,
  );
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(",")}}`;
}

function plainNumber(text: string): string {
  return /^-?\d+\.\d*0+$/.test(text) ? text.replace(/\.?0+$/, "") : text;
}

export function isRecord(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber);
}

/** Rows have no order that both sides know. */
export function sorted(rows: Json): Json {
  if (!Array.isArray(rows)) return rows;
  return [...rows].sort((one, other) => (canonical(one) < canonical(other) ? -1 : 1));
}
