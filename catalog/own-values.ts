import { memoizePerObject } from "#runtime";
import { type Catalog, readSmartTag } from "./catalog.ts";
import type { QualifiedName } from "./data-types.ts";
import type { CatalogTable } from "./tables.ts";

/** A function of the key that returns a column of the caller's own rows which the caller may not select; it returns null for other rows. */
export type OwnValue = { readonly function: QualifiedName; readonly key: string };

type OwnColumn = OwnValue & { readonly name: string };

/** The columns with the tag `@personal function`, if the table has a key of one column. */
const ownColumnsOf = memoizePerObject(({ schema, columns, primaryKey }: CatalogTable): readonly OwnColumn[] => {
  const [key, ...others] = primaryKey;
  if (key === undefined || others.length > 0) return [];
  return [...columns.values()].flatMap(({ name, comment }) => {
    const called = readSmartTag(comment, "personal");
    return called ? [{ name, key, function: { schema, name: called } }] : [];
  });
});

const NONE: ReadonlyMap<string, OwnValue> = new Map();

/** Returns the columns of the table that the role may read in its own rows only. */
export function ownValuesOf(
  catalog: Pick<Catalog, "schemas" | "hasPrivilege">,
  role: string,
  table: CatalogTable,
): ReadonlyMap<string, OwnValue> {
  const columns = ownColumnsOf(table).filter(
    ({ name, function: called }) =>
      !catalog.hasPrivilege(role, "select", table, name) && mayExecute(catalog, role, called),
  );
  return columns.length === 0 ? NONE : new Map(columns.map(({ name, ...own }) => [name, own]));
}

function mayExecute(
  { schemas, hasPrivilege }: Pick<Catalog, "schemas" | "hasPrivilege">,
  role: string,
  { schema, name }: QualifiedName,
) {
  const routines = schemas.get(schema)?.routines.get(name) ?? [];
  return routines.length === 1 && hasPrivilege(role, "execute", routines[0]!);
}
