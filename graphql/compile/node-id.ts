import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { type Codec, haveValues, type NodeTable } from "#plugins";
import { decodeList, encodeList } from "./collection-sql.ts";
import { type CoercedVariables, leafSql } from "./operation-values.ts";
import { castToText, textLiteral } from "./spell-value.ts";

/** The global id of a row, as a JSON string: Base64 of a list of the type and the key. */
export function nodeIdSql({ table, typeName, key }: NodeTable, row: SQL): SQL {
  const values = key.map((column) => {
    const { codec } = table.codec.attributes[column]!;
    const text = castToText(sql`${row}.${sql.identifier(column)}`, codec);
    const isNumber = codec.fromPg === TYPES.int.fromPg || codec.fromPg === TYPES.float.fromPg;
    return isNumber ? text : sql`pg_catalog.to_json(${text})::pg_catalog.text`;
  });
  return encodeList(typeName, values);
}

/** The conditions that a row has the type of the id, and its key. */
export function isNode(
  { table, key, rowType }: NodeTable,
  row: SQL,
  readKey: (variables: CoercedVariables) => readonly unknown[],
): SQL[] {
  const valueAt = (codec: Codec, index: number) => leafSql((variables) => readKey(variables)[index], codec);
  const conditions = haveValues(table, key, row, valueAt);
  if (!rowType) return conditions;
  const type = sql`${row}.${sql.identifier(rowType.column)}::pg_catalog.text`;
  return [...conditions, sql`${type} operator(pg_catalog.=) ${textLiteral(rowType.value)}`];
}

/** The type and the values of the key; null for a text that is no global id. */
export function decodeNodeId(nodeId: unknown): { readonly typeName: string; readonly key: readonly unknown[] } | null {
  const [typeName, ...key] = decodeList(nodeId) ?? [];
  return typeof typeName === "string" ? { typeName, key } : null;
}
