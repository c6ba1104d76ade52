import type { Catalog, CatalogSchema, CatalogTable } from "#catalog";
import { isToOne, nameRelationships, operatorsOf, type StoredRelationship } from "#planner";
import { indented, propertyName, typeBlock } from "./type-blocks.ts";

/**
 * The types of bodies with related rows and with operators. supabase-js does not know these, so they are not in `Database`. Tables
 * outside `tables` have none.
 */
export function bodyTypes(
  schemas: readonly CatalogSchema[],
  tables: ReadonlySet<CatalogTable>,
  catalog: Catalog,
): string {
  const blocks = schemas.map((schema) => {
    const described = [...schema.tables.values()].filter((table) => tables.has(table));
    return typeBlock(
      schema.name,
      described.map((table) => tableBlock(table, tables, catalog)),
    );
  });
  return `/** The keys, times and relations in the bodies of nested requests and of operators, by schema and table. */
type Bodies = {\n${indented(blocks.join("\n"))}\n};
${bodyForms(JSON.stringify(schemas[0]!.name))}`;
}

function tableBlock(table: CatalogTable, tables: ReadonlySet<CatalogTable>, catalog: Catalog): string {
  const times = [...table.columns.values()].filter(({ baseType }) => operatorsOf(baseType).subject === "time");
  const relations = [...nameRelationships(table, catalog)].flatMap(([name, relationship]) =>
    tables.has(catalog.findTable(relationship.target)!) ? [relationMember(name, relationship, table)] : [],
  );
  return typeBlock(table.name, [
    `key: ${unionOf(table.primaryKey)};`,
    `times: ${unionOf(times.map(({ name }) => name))};`,
    typeBlock("relations", relations),
  ]);
}

function relationMember(name: string, relationship: StoredRelationship, { columns }: CatalogTable): string {
  const many = !isToOne(relationship);
  const nullable =
    relationship.kind !== "many-to-many" &&
    (relationship.keyAt === "target" || relationship.columns.some(({ source }) => columns.get(source)!.nullable));
  const target = JSON.stringify(relationship.target.name);
  return `${propertyName(name)}: { table: ${target}; many: ${many}; nullable: ${!many && nullable} };`;
}

function unionOf(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(" | ") || "never";
}

const bodyForms = (schema: string) => `type Member<Type, Key> = Key extends keyof Type ? Type[Key] : never;
type TableOf<Schema, Name> = Member<Member<Member<Database, Schema>, "Tables">, Name>;
type BodyOf<Schema, Name> = Member<Member<Bodies, Schema>, Name>;
type KeyOf<Schema, Name> = Member<BodyOf<Schema, Name>, "key">;
type RelationsOf<Schema, Name> = Member<BodyOf<Schema, Name>, "relations">;
type ForeignKeyOf<Table> = Table extends { Relationships: (infer Each)[] } ? Member<Member<Each, "columns">, number> : never;
type WithOptional<Row, Key> = Omit<Row, Key & keyof Row> & Partial<Pick<Row, Key & keyof Row>>;

/** Foreign keys are filled in with the keys of related rows. */
type InsertBody<Schema, Name> = WithOptional<Member<TableOf<Schema, Name>, "Insert">, ForeignKeyOf<TableOf<Schema, Name>>> & {
  [Relation in keyof RelationsOf<Schema, Name>]?: RelatedRows<RelationsOf<Schema, Name>[Relation], InsertRow<Schema>>;
};
type UpdateBody<Schema, Name> = Member<TableOf<Schema, Name>, "Update"> & {
  [Relation in keyof RelationsOf<Schema, Name>]?: RelatedRows<RelationsOf<Schema, Name>[Relation], UpdateRow<Schema>>;
};
type KeyedBody<Schema, Name> = UpdateBody<Schema, Name> & {
  [Column in KeyOf<Schema, Name> & keyof Member<TableOf<Schema, Name>, "Row">]: Member<TableOf<Schema, Name>, "Row">[Column];
};
type InsertRow<Schema> = { form: "insert"; schema: Schema };
type UpdateRow<Schema> = { form: "update"; schema: Schema };
type RelatedRow<Row, Name, Many> = Row extends { form: infer Form; schema: infer Schema }
  ? InsertBody<Schema, Name> | (Form extends "insert" ? never : Many extends true ? KeyedBody<Schema, Name> : UpdateBody<Schema, Name>)
  : never;
type RelatedRows<Relation, Row> = Relation extends { table: infer Name; many: infer Many; nullable: infer Nullable }
  ? Many extends true
    ? RelatedRow<Row, Name, Many>[]
    : RelatedRow<Row, Name, Many> | (Nullable extends true ? null : never)
  : never;

/** A row with rows of related tables in it, for \`Prefer: nested=insert\`. */
export type NestedInsert<Name extends keyof Bodies[Schema], Schema extends keyof Bodies = ${schema}> = InsertBody<Schema, Name>;
/** The values of a row and of rows of related tables, for \`Prefer: nested=update\`, \`upsert\` and \`replace\`. */
export type NestedUpdate<Name extends keyof Bodies[Schema], Schema extends keyof Bodies = ${schema}> = UpdateBody<Schema, Name>;

type OperatorName = "$inc" | "$mul" | "$min" | "$max" | "$append" | "$prepend" | "$remove" | "$merge" | "$unset" | "$set";
type Operator<Operands> = {
  [Name in keyof Operands]: { [Each in Name]: Operands[Each] } & { [Other in Exclude<OperatorName, Name>]?: never };
}[keyof Operands];
type Ordered<Value> = { $min: Value; $max: Value };
type OperandsOf<Value, IsTime> = Json extends Value | null
  ? { $append: Json; $prepend: Json; $merge: { [key: string]: Json | undefined }; $unset: string | string[] }
  : [Value] extends [readonly (infer Item)[]]
    ? { $append: Item | Item[]; $prepend: Item | Item[]; $remove: Item }
    : [Value] extends [number]
      ? { $inc: number; $mul: number } & Ordered<number>
      : IsTime extends true
        ? { $inc: string } & Ordered<Value>
        : Ordered<Value>;

/** The operators that a column with such values takes, for \`Prefer: operators\`. */
export type Operators<Value, IsTime extends boolean = false> = Operator<OperandsOf<NonNullable<Value>, IsTime> & { $set: Value }>;
type OperatorBody<Schema, Name> = OperatorValues<Member<TableOf<Schema, Name>, "Update">, BodyOf<Schema, Name>>;
type OperatorValues<Row, Body> = {
  [Column in keyof Row]: Column extends Member<Body, "key">
    ? Row[Column]
    : Row[Column] | Operators<Exclude<Row[Column], undefined>, Column extends Member<Body, "times"> ? true : false>;
};
/** Values, and operators that make them of those before, for \`Prefer: operators\`. */
export type OperatorUpdate<Name extends keyof Bodies[Schema], Schema extends keyof Bodies = ${schema}> = OperatorBody<Schema, Name>;

/** For createClient<ExtendedDatabase>(): inserts and updates also take related rows, and updates operators. */
export type ExtendedDatabase = {
  [Schema in keyof Database]: Schema extends keyof Bodies
    ? {
        [Group in keyof Database[Schema]]: Group extends "Tables"
          ? { [Name in keyof Database[Schema][Group]]: ExtendedTable<Schema, Name> }
          : Database[Schema][Group];
      }
    : Database[Schema];
};
type ExtendedTable<Schema, Name> = {
  [Part in keyof TableOf<Schema, Name>]: Part extends "Insert"
    ? InsertBody<Schema, Name>
    : Part extends "Update"
      ? OperatorBody<Schema, Name> & Pick<UpdateBody<Schema, Name>, keyof RelationsOf<Schema, Name>>
      : TableOf<Schema, Name>[Part];
};
`;
