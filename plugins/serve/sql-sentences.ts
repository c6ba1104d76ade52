import type { DatabaseError } from "pg";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { sentenceOf as sentenceOfSql } from "../../engine/sql-sentences.ts";

/** What people are told of an error of Postgres, and which field of the input it is about. */
export type Sentence = { readonly message: string; readonly field?: string; readonly hint?: string };

/** Null for what is no doing of the client's, and not meant for its eyes. */
export function sentenceOf(error: DatabaseError, catalog: Catalog): Sentence | null {
  const sentence = sentenceOfSql(error, catalog);
  if (!sentence) return null;
  const { column, ...told } = sentence;
  return { ...told, ...(column && { field: toFieldName(column) }) };
}

/** `parent_id` is the input's `parentId`. */
function toFieldName(column: string): string {
  return column.replace(/_+(\w)/g, (_, letter: string) => letter.toUpperCase());
}
