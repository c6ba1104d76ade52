import { type Catalog, type CatalogTable, exposedSchemas, type QualifiedName, type Routine } from "#catalog";

export const VERBS = ["select", "insert", "update", "delete"] as const;
export type Verb = (typeof VERBS)[number];

/** True if the kind of the table permits the command, regardless of privileges. */
export function supports({ insertable, updatable, deletable }: CatalogTable, verb: Verb): boolean {
  return { select: true, insert: insertable, update: updatable, delete: deletable }[verb];
}

export function qualifiedName({ schema, name }: QualifiedName): string {
  return `${schema}.${name}`;
}

export function functionSignature(routine: Routine): string {
  return `${qualifiedName(routine)}(${routine.arguments.map(({ type }) => type.sqlName).join(", ")})`;
}

/** The functions of the exposed schemas, without those of extensions. */
export function exposedRoutines(catalog: Catalog): Routine[] {
  return exposedSchemas(catalog)
    .flatMap((schema) => [...schema.routines.values()].flat())
    .filter(({ extension }) => extension === null);
}

export function mayUseSchema(catalog: Catalog, role: string, { schema }: QualifiedName): boolean {
  const found = catalog.schemas.get(schema);
  return found !== undefined && catalog.hasPrivilege(role, "usage", found);
}

export function mayExecute(catalog: Catalog, role: string, routine: Routine): boolean {
  return mayUseSchema(catalog, role, routine) && catalog.hasPrivilege(role, "execute", routine);
}
