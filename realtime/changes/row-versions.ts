import type { CatalogTable } from "../../engine/catalog/tables.ts";
import { quotedName } from "../../engine/pg-client/quoted-name.ts";
import type { ReplicatedColumn, ReplicatedRow, RowChange } from "../../engine/replication/changes.ts";
import type { CellText } from "./row-filter.ts";

/** A row as it was, by the names of its columns. */
export type RowVersion = ReadonlyMap<string, CellText>;

/** The rows of `$1`, in their order and under the table's own name. */
export function fromRowVersions(table: CatalogTable, versions: readonly RowVersion[]): string {
  return `from json_array_elements($1::json) with ordinality as "$images" ("$image", "$number")
cross join lateral ${rowVersionSql(table, versions)}
order by "$images"."$number"`;
}

/** Policies may read a generated column that is not in the log: a virtual one never is, and before Postgres 18 none was. */
function rowVersionSql({ schema, name: table, columns }: CatalogTable, versions: readonly RowVersion[]): string {
  const alias = quotedName(table);
  const written = `json_populate_record(null::${quotedName(schema, table)}, "$images"."$image") as ${alias}`;
  const cells = [...columns.values()].map(({ name, generated }) => {
    const isComputed = generated !== null && !versions.every((version) => version.has(name));
    return {
      isComputed,
      sql: isComputed ? `(${generated.expression}) as ${quotedName(name)}` : quotedName(table, name),
    };
  });
  if (!cells.some(({ isComputed }) => isComputed)) return written;
  return `(select ${cells.map(({ sql }) => sql).join(", ")} from ${written}) as ${alias}`;
}

const encodedVersions = new WeakMap<readonly RowVersion[], string>();

/** What `$1` is; worked out once for all who are asked about the same rows. */
export function encodeRowVersions(versions: readonly RowVersion[], table: CatalogTable): string {
  const text =
    encodedVersions.get(versions) ?? `[${versions.map((image) => encodeRowVersion(image, table)).join(",")}]`;
  encodedVersions.set(versions, text);
  return text;
}

/** Each value is a text that its type reads, but JSON, which would be read as a JSON string. */
function encodeRowVersion(version: RowVersion, table: CatalogTable): string {
  const members: string[] = [];
  for (const [name, cell] of version) {
    if (cell === undefined || cell === null) continue;
    const type = table.columns.get(name)?.baseType;
    const isJson = type?.schema === "pg_catalog" && (type.name === "json" || type.name === "jsonb");
    members.push(`${JSON.stringify(name)}:${isJson ? cell : JSON.stringify(cell)}`);
  }
  return `{${members.join(",")}}`;
}

/**
 * The row before, as far as the log has it. Of a partition that logs its key alone, while its root logs whole rows, it
 * tells as if everything else had been null: such a row is taken for the key that it is.
 */
export function readOldRow({ old, relation }: RowChange, { kind, primaryKey }: CatalogTable): ReplicatedRow | null {
  if (!old || kind !== "partitioned table" || relation.replicaIdentity !== "full") return old;
  const isKey = relation.columns.map(({ name }) => primaryKey.includes(name));
  return old.every((cell, at) => cell === null || isKey[at])
    ? old.map((cell, at) => (isKey[at] ? cell : undefined))
    : old;
}

/**
 * Whether a column is still what it was when the log was written. What is told late, to somebody who resumes perhaps,
 * can be of before it was altered: its values are then none of the type that it has now.
 */
export function isUnalteredColumn(table: CatalogTable, { name, typeOid }: ReplicatedColumn): boolean {
  return table.columns.get(name)?.type.oid === typeOid;
}
