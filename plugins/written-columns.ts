import { makeExtension } from "./extension.ts";
import type { Codec } from "./table.ts";

/** The column that a field of a mutation's input sets. */
export type WrittenColumn = { readonly column: string; readonly codec: Codec };

/** Null for a field that sets no column. */
export const { add: withWrittenColumn, of: writtenColumnOf } = makeExtension<WrittenColumn>("writtenColumn");
