import type { Table } from "../../engine/catalog/tables.ts";
import type { Change, Row } from "../../engine/changes/changes.ts";

/**
 * The row before, as far as the log has it. Of a partition that logs its key alone, while its root logs whole rows, it
 * tells as if everything else had been null: such a row is taken for the key that it is.
 */
export function rowBefore({ old, relation }: Change, { kind, primaryKey }: Table): Row | null {
  if (!old || kind !== "partitioned table" || relation.replicaIdentity !== "full") return old;
  const isKey = relation.columns.map(({ name }) => primaryKey.includes(name));
  return old.every((cell, at) => cell === null || isKey[at])
    ? old.map((cell, at) => (isKey[at] ? cell : undefined))
    : old;
}
