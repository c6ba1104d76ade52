import type { Collection } from "../collections.ts";
import type { Field } from "../fields.ts";
import { invalidId, noRow } from "../refusals.ts";
import { faultOfCharacters, faultOfText, isBeyond } from "./value.ts";

/** `7`, or `7,de` for a key of two columns; a comma within a value is `%2C`. One value for each column of the key. */
export function parseKey(segment: string, collection: Collection, version: number): readonly string[] {
  const { key } = collection;
  const parts = key.length === 1 ? [segment] : segment.split(",");
  if (parts.length !== key.length) {
    throw invalidId(version, `It takes ${key.map(({ name }) => name).join(",")}.`);
  }
  const values = parts.map((part) => decode(part, version));
  key.forEach(({ name, column, isReadByFunction }, index) => {
    const text = values[index]!;
    const fault = isReadByFunction.text ? faultOfCharacters(text) : faultOfText(column.type, text);
    if (fault) throw invalidId(version, `${name} ${fault}.`);
  });
  const isNone = ({ column, isReadByFunction }: Field, index: number) =>
    !isReadByFunction.text && isBeyond(column.type, values[index]!);
  if (key.some(isNone)) throw noRow(collection);
  return values;
}

/** As it stands in an address; null where that is nothing at all, for an address with nothing there is another one. */
export function formatKey(values: readonly string[]): string | null {
  return values.map(encodeURIComponent).join(",") || null;
}

function decode(part: string, version: number): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalidId(version, "Its percent signs cannot be read.");
  }
}
