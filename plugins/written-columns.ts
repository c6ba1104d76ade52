import type { Codec, WithExtensions } from "./table.ts";

/** The column that a field of a mutation's input sets. */
export type WrittenColumn = { readonly column: string; readonly codec: Codec };

type WrittenExtensions = { readonly writtenColumn?: WrittenColumn };

export function withWrittenColumn<Field extends object>(
  field: Field & WithExtensions,
  writtenColumn: WrittenColumn,
): Field {
  const own: WrittenExtensions = { writtenColumn };
  return { ...field, extensions: { ...field.extensions, ...own } };
}

/** Null when the field sets no column. */
export function writtenColumnOf({ extensions }: WithExtensions): WrittenColumn | null {
  return (extensions as WrittenExtensions | undefined)?.writtenColumn ?? null;
}
