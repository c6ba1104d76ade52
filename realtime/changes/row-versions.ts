import type { CatalogTable } from "../../engine/catalog/tables.ts";
import { quotedName } from "../../engine/pg-client/quoted-name.ts";
import type { ReplicatedColumn, ReplicatedRow, RowChange } from "../../engine/replication/changes.ts";
import type { CellText } from "./row-filter.ts";

/** A row at the time of the change, by column name. */
export type RowVersion = ReadonlyMap<string, CellText>;

/** The rows of `$1`, in their order, under the table's own name. */
export function fromRowVersions(table: CatalogTable, versions: readonly RowVersion[]): string {
  return `from json_array_elements($1::json) with ordinality as "$images" ("$image", "$number")
cross join lateral ${rowVersionSql(table, versions)}
order by "$images"."$number"`;
}

/** Policies may read a generated column that is not in the log: virtual columns never are, and before Postgres 18 stored ones are not either. */
function rowVersionSql({ schema, name: table, columns }: CatalogTable, versions: readonly RowVersion[]): string {
  const alias = quotedName(table);
  const record = `json_populate_record(null::${quotedName(schema, table)}, "$images"."$image") as ${alias}`;
  const cells = [...columns.values()].map(({ name, generated }) => {
    const isComputed = generated !== null && !versions.every((version) => version.has(name));
    return {
      isComputed,
      sql: isComputed ? `(${generated.expression}) as ${quotedName(name)}` : quotedName(table, name),
    };
  });
  if (!cells.some(({ isComputed }) => isComputed)) return record;
  return `(select ${cells.map(({ sql }) => sql).join(", ")} from ${record}) as ${alias}`;
}

const encodedVersions = new WeakMap<readonly RowVersion[], string>();

/** The value of `$1`; encoded once for all groups that check the same rows. */
export function encodeRowVersions(versions: readonly RowVersion[], table: CatalogTable): string {
  const text =
    encodedVersions.get(versions) ?? `[${versions.map((version) => encodeRowVersion(version, table)).join(",")}]`;
  encodedVersions.set(versions, text);
  return text;
}

/** Each value is a string that its type parses, except JSON, which would be parsed as a JSON string. */
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
 * The old row as far as the log has it. A partition with replica identity `default` under a root with `full` logs null for all columns
 * except the key: such a row is reduced to its key.
 */
export function readOldRow({ old, relation }: RowChange, { kind, primaryKey }: CatalogTable): ReplicatedRow | null {
  if (!old || kind !== "partitioned table" || relation.replicaIdentity !== "full") return old;
  const isKey = relation.columns.map(({ name }) => primaryKey.includes(name));
  return old.every((cell, at) => cell === null || isKey[at])
    ? old.map((cell, at) => (isKey[at] ? cell : undefined))
    : old;
}

/**
 * Whether a column still has the type that it had when the log was written. A change that is delivered late, as to a client that resumes, may
 * be from before it was altered: its value then is not of the current type.
 */
export function isUnalteredColumn(table: CatalogTable, { name, typeOid }: ReplicatedColumn): boolean {
  return table.columns.get(name)?.type.oid === typeOid;
}
