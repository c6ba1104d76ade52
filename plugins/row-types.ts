import type { PgRelation, SchemaResource } from "./table.ts";

/** The types of the rows of a table whose GraphQL type is an interface (`@interface mode:single` or `mode:relational`). */
type RowTypes = {
  /** The column that has the type of a row. */
  readonly column: string;
  readonly types: readonly RowType[];
};

type RowType = {
  /** The value of the column. */
  readonly value: string;
  readonly typeName: string;
  /** The relation to the row that has the columns of the type. Null: the row itself has them. */
  readonly relation: PgRelation | null;
};

/** Null for a table without such types. */
export function rowTypesOf({ codec, registry }: SchemaResource): RowTypes | null {
  const { polymorphism } = codec;
  if (polymorphism?.mode !== "relational" && polymorphism?.mode !== "single") return null;
  const relations = registry.pgRelations[codec.name] as Readonly<Record<string, PgRelation>> | undefined;
  const named: Readonly<Record<string, { readonly name: string; readonly relationName?: string }>> = polymorphism.types;
  const types = Object.entries(named).map(([value, { name, relationName }]) => {
    return { value, typeName: name, relation: relationName === undefined ? null : relations![relationName]! };
  });
  return { column: polymorphism.typeAttributes[0]!, types };
}
