import type pg from "pg";
import type { DatabaseError } from "pg";

const QUOTED_NAME = /"([^"]*)"/g;
/** A number at the end of a name that may be that of a shard, as in `orders_102040`. */
const FINAL_NUMBER = /_(\d{6,18})$/;
const FIND_SHARDS =
  "select shardid::pg_catalog.text as shard from pg_catalog.pg_dist_shard where shardid = any ($1::pg_catalog.int8[])";

/**
 * Names tables and constraints in the error of a worker as the caller knows them, without the number of the shard that Citus adds. Other
 * names may end with a number, too, such as those of partitions by month. If Citus cannot be asked, every number counts as one of a shard.
 */
export async function hideShards(
  error: DatabaseError,
  ask: <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>,
): Promise<void> {
  const numbers = numbersIn(error);
  if (numbers.length === 0) return;
  const shards = await ask(async (client) => {
    const { rows } = await client.query<{ shard: string }>(FIND_SHARDS, [numbers]);
    return rows.map(({ shard }) => shard);
  }).catch(() => numbers);
  const ofName = (name: string) =>
    name.replace(FINAL_NUMBER, (end, number: string) => (shards.includes(number) ? "" : end));
  const ofText = (text: string) => text.replaceAll(QUOTED_NAME, (_, name: string) => `"${ofName(name)}"`);
  error.message = ofText(error.message);
  error.detail = error.detail && ofText(error.detail);
  error.hint = error.hint && ofText(error.hint);
  error.table = error.table && ofName(error.table);
  error.constraint = error.constraint && ofName(error.constraint);
}

function numbersIn({ message, detail, hint, table, constraint }: DatabaseError): string[] {
  const quoted = [message, detail, hint].flatMap((text) => [...(text ?? "").matchAll(QUOTED_NAME)]);
  const names = [...quoted.map(([, name]) => name), table, constraint];
  return [...new Set(names.flatMap((name) => FINAL_NUMBER.exec(name ?? "")?.[1] ?? []))];
}
