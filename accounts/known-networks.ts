import type { AsOwner } from "#postgres/database";
import { batchLookups } from "#runtime/concurrency";
import { findUnstorable } from "#runtime/json";
import { toInet } from "./identity/client-info.ts";

/** Returns true if the user with this name has signed in from the network of this address before. */
export type IsKnownNetwork = (name: string, address: string | null) => Promise<boolean>;

/** More logins than that at once indicate an attack: the excess ones count as unknown. */
const MAX_WAITING = 1_000;

const FIND_KNOWN = `
  select asked.key
  from rows from (
    pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.inet[])
  ) as asked (key, name, address)
  where auth.is_known_network((auth.find_account(asked.name)).user_id, asked.address)`;

/**
 * Simultaneous logins are looked up together, before anything is written, so that many unknown clients cost few queries. The
 * audit log holds the known networks: nothing else is stored, and all gateways read the same log.
 */
export function makeIsKnownNetwork(asOwner: AsOwner): IsKnownNetwork {
  let waiting = 0;
  const findKnown = batchLookups(async (keys): Promise<ReadonlySet<string>> => {
    const asked = keys.map((key) => JSON.parse(key) as [name: string, address: string]);
    const values = [keys, asked.map(([name]) => name), asked.map(([, address]) => address)];
    const { rows } = await asOwner((client) => client.query<{ key: string }>(FIND_KNOWN, values));
    return new Set(rows.map(({ key }) => key));
  });

  return async (name, text) => {
    const address = text === null ? null : toInet(text);
    if (address === null || waiting >= MAX_WAITING || findUnstorable(name) !== null) return false;
    const key = JSON.stringify([name, address]);
    waiting++;
    try {
      return (await findKnown(key)).has(key);
    } finally {
      waiting--;
    }
  };
}
