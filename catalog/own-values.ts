import { memoizePerObject } from "#runtime";
import { type Catalog, readSmartTag } from "./catalog.ts";
import type { CatalogTable } from "./tables.ts";
import type { QualifiedName } from "./types.ts";

/** How a caller reads a column of its own rows that it may not select: by a function of the key, which is null for other rows. */
export type OwnValue = { readonly function: QualifiedName; readonly key: string };

type OwnColumn = OwnValue & { readonly name: string };

/** The columns with the tag `@personal function`, where the table has a key of one column. */
const ownColumnsOf = memoizePerObject(({ schema, columns, primaryKey }: CatalogTable): readonly OwnColumn[] => {
  const [key, ...others] = primaryKey;
  if (key === undefined || others.length > 0) return [];
  return [...columns.values()].flatMap(({ name, comment }) => {
    const called = readSmartTag(comment, "personal");
    return called ? [{ name, key, function: { schema, name: called } }] : [];
  });
});

const NONE: ReadonlyMap<string, OwnValue> = new Map();

/** The columns of the table that the role reads in its own rows only. */
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
