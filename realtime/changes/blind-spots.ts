import type { Table } from "../../engine/catalog/tables.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";

/** Which columns the policies read of a table that is known by these columns alone. To judge its rows would be to guess. */
export type BlindSpots = (table: Table, known: ReadonlySet<string>) => Promise<readonly string[]>;

type Read = { readonly column: string | null };

// A policy that reads rows as a whole depends on no column in particular.
const READ = `
  select distinct a.attname as column
  from pg_policy p
    join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.deptype = 'n'
      and d.refclassid = 'pg_class'::regclass and d.refobjid = p.polrelid
    left join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid and a.attnum > 0
  where p.polrelid = $1 and p.polcmd in ('*', 'r')`;

/** Asks once per table, for as long as the catalogue has the same one, and only where something is unknown. */
export function makeBlindSpots(asOwner: AsOwner): BlindSpots {
  const answers = new WeakMap<Table, Promise<readonly (string | null)[]>>();
  const read = async ({ oid }: Table): Promise<readonly (string | null)[]> => {
    const { rows } = await asOwner((client) => client.query<Read>(READ, [oid]));
    return rows.map(({ column }) => column);
  };
  return async (table, known) => {
    // What is generated is made of the others where it is not known.
    const unknown = [...table.columns.values()].filter(({ name, generated }) => !generated && !known.has(name));
    if (unknown.length === 0 || table.policies.length === 0) return [];
    const answer = answers.get(table) ?? read(table);
    answers.set(table, answer);
    answer.catch(() => answers.delete(table));
    const columns = await answer;
    return unknown.map(({ name }) => name).filter((name) => columns.includes(name) || columns.includes(null));
  };
}
