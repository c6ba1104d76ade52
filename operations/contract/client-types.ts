import {
  type BaseType,
  baseTypeOf,
  type Catalog,
  type CatalogColumn,
  type CatalogSchema,
  type CatalogTable,
  type CompositeType,
  type DataType,
  type DirectRelationship,
  type EnumType,
  exposedSchemas,
  hasSmartTag,
  type Routine,
  type RoutineArgument,
  type TypeAttribute,
} from "#catalog";
import { isCallable } from "#planner/find-target";
import { POSTGREST_VERSION } from "#rest-gateway/openapi/swagger";
import { bodyTypes } from "./body-types.ts";
import { indented, propertyName, typeBlock } from "./type-blocks.ts";

/** The exposed schemas as the type for `createClient<Database>()` of supabase-js. */
export function toClientTypes(catalog: Catalog): string {
  const exposed = exposedSchemas(catalog);
  const textOf = makeTypeText(catalog);
  const members = [
    `__InternalSupabase: { PostgrestVersion: "${POSTGREST_VERSION}" };`,
    ...exposed.map((schema) => schemaType(schema, catalog, textOf)),
  ];
  // The name that the documentation of supabase-js uses.
  const databaseType = `export type Database = {\n${indented(members.join("\n"))}\n};`;
  return `${JSON_TYPE}
${databaseType}

${shorthands(exposed[0]!.name)}
${bodyTypes(exposed, new Set(exposed.flatMap(describedTables)), catalog)}`;
}

/** The tables and views that clients see. */
function describedRelations({ tables }: CatalogSchema): CatalogTable[] {
  return [...tables.values()].filter(({ isPartition, extension }) => !isPartition && !extension);
}

function describedTables(schema: CatalogSchema): CatalogTable[] {
  return describedRelations(schema).filter((relation) => !isView(relation));
}

const isView = ({ kind }: CatalogTable) => kind === "view" || kind === "materialized view";

function schemaType(schema: CatalogSchema, catalog: Catalog, textOf: TypeText): string {
  const typesOf = (tables: readonly CatalogTable[]) => tables.map((table) => tableType(table, catalog, textOf));
  const routines = [...schema.routines.values()]
    .map((overloads) => overloads.filter((routine) => routine.extension === null && isClientCallable(routine, catalog)))
    .filter((overloads) => overloads.length > 0);
  const types = [...schema.types.values()];

  return typeBlock(schema.name, [
    typeBlock("Tables", typesOf(describedTables(schema))),
    typeBlock("Views", typesOf(describedRelations(schema).filter(isView))),
    typeBlock(
      "Functions",
      routines.map((overloads) => routineType(overloads, catalog, textOf)),
    ),
    typeBlock("Enums", types.filter(isEnum).map(enumType)),
    typeBlock(
      "CompositeTypes",
      types.filter(isComposite).map((type) => compositeType(type, textOf)),
    ),
  ]);
}

const isEnum = (type: DataType): type is EnumType => type.kind === "enum";
const isComposite = (type: DataType): type is CompositeType => type.kind === "composite" && type.table === null;

function enumType({ name, values }: EnumType): string {
  return `${propertyName(name)}: ${enumText(values)};`;
}

function compositeType({ name, attributes }: CompositeType, textOf: TypeText): string {
  return typeBlock(
    name,
    [...attributes.values()].map((attribute) => attributeText(attribute, textOf)),
  );
}

const JSON_TYPE = `export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];
`;

/** Short names of the types of the default schema. */
function shorthands(schema: string): string {
  const from = `Database[${JSON.stringify(schema)}]`;
  return `type Default = ${from};
type Relations = Default["Tables"] & Default["Views"];
export type Tables<Name extends keyof Relations> = Relations[Name] extends { Row: infer Row } ? Row : never;
export type TablesInsert<Name extends keyof Relations> = Relations[Name] extends { Insert: infer Row } ? Row : never;
export type TablesUpdate<Name extends keyof Relations> = Relations[Name] extends { Update: infer Row } ? Row : never;
export type Enums<Name extends keyof Default["Enums"]> = Default["Enums"][Name];
type CompositeTypes<Name extends keyof Default["CompositeTypes"]> = Default["CompositeTypes"][Name];
`;
}

/** Row, Insert, Update and Relationships of a table or view. */
function tableType(table: CatalogTable, catalog: Catalog, textOf: TypeText): string {
  const columns = [...table.columns.values()];
  const computed = computedColumns(table);
  const written = columns.map((column) => toWritten(column, catalog));
  const writable = written.filter(({ stored }) => stored.generated === null && stored.identity !== "always");
  const valueText = ({ type, nullable }: CatalogColumn) => (nullable ? `${textOf(type)} | null` : textOf(type));
  const writtenText = (column: CatalogColumn) => {
    const text = valueText(column);
    return text === "Json" ? "NonNullable<Json>" : text;
  };

  const members = [
    typeBlock("Row", [
      ...columns.map((column) => `${propertyName(column.name)}: ${valueText(column)};`),
      ...computed.map((routine) => `${propertyName(routine.name)}: ${textOf(routine.returns.type)} | null;`),
    ]),
  ];
  if (table.insertable) {
    const fields = writable.map(({ column, isOptional }) => {
      return `${propertyName(column.name)}${isOptional ? "?" : ""}: ${writtenText(column)};`;
    });
    members.push(typeBlock("Insert", fields));
  }
  if (table.updatable) {
    const fields = writable.map(({ column }) => `${propertyName(column.name)}?: ${writtenText(column)};`);
    members.push(typeBlock("Update", fields));
  }
  members.push(relationshipsType(table, catalog), ...computedFields(computed));
  return typeBlock(table.name, members);
}

type WrittenColumn = {
  readonly column: CatalogColumn;
  /** The table column behind a view column, whose default and generation apply. */
  readonly stored: CatalogColumn;
  readonly isOptional: boolean;
};

function toWritten(column: CatalogColumn, catalog: Catalog): WrittenColumn {
  const stored = storedColumn(column, catalog);
  const isOptional = [column, stored].some(
    (each) => each.nullable || each.default !== null || each.identity !== null || each.generated !== null,
  );
  return { column, stored, isOptional };
}

function storedColumn(column: CatalogColumn, catalog: Catalog): CatalogColumn {
  const stored = column.origin && catalog.findTable(column.origin.table)?.columns.get(column.origin.column);
  return stored ? storedColumn(stored, catalog) : column;
}

function relationshipsType(table: CatalogTable, catalog: Catalog): string {
  const entries = catalog.referencesFrom(table).filter(({ target }) => target.schema === table.schema);
  if (entries.length === 0) return "Relationships: [];";
  return `Relationships: [\n${indented(entries.map(relationshipType).join("\n"))}\n];`;
}

function relationshipType({ constraint, kind, columns, target }: DirectRelationship): string {
  const list = (names: readonly string[]) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
  const fields = [
    `foreignKeyName: ${JSON.stringify(constraint)};`,
    `columns: ${list(columns.map(({ source }) => source))};`,
    `isOneToOne: ${kind === "one-to-one"};`,
    `referencedRelation: ${JSON.stringify(target.name)};`,
    `referencedColumns: ${list(columns.map((pair) => pair.target))};`,
  ];
  return `{\n${indented(fields.join("\n"))}\n},`;
}

/** The columns that `select=*` does not include. */
function computedFields(computed: readonly Routine[]): string[] {
  if (computed.length === 0) return [];
  return [`ComputedFields: ${computed.map(({ name }) => JSON.stringify(name)).join(" | ")};`];
}

/** True if clients can call the function, or embed its rows in those of the table that it takes. */
function isClientCallable(routine: Routine, catalog: Catalog): boolean {
  if (isCallable(routine)) return true;
  const { from, to } = rowTablesOf(routine, catalog);
  return routine.kind === "function" && from !== null && to !== null;
}

/** A union of the overloads of one name. */
function routineType(overloads: readonly Routine[], catalog: Catalog, textOf: TypeText): string {
  const variants = overloads.map((routine) => variantOf(routine, catalog, textOf));
  return `${propertyName(overloads[0]!.name)}: ${variants.join(" | ")};`;
}

function variantOf(routine: Routine, catalog: Catalog, textOf: TypeText): string {
  const members = [`Args: ${argumentsType(routine, textOf)};`, `Returns: ${returnsType(routine, textOf)};`];
  const options = rowsOptions(routine, catalog);
  if (options) members.push(options);
  return `{\n${indented(members.join("\n"))}\n}`;
}

function argumentsType({ arguments: all }: Routine, textOf: TypeText): string {
  if (all.length === 0) return "never";
  return `{ ${all.map((argument) => argumentText(argument, textOf)).join(" ")} }`;
}

function argumentText({ name, type, required, default: text }: RoutineArgument, textOf: TypeText): string {
  const takesNull = text !== null && /^null\b/i.test(text);
  // The key by which supabase-js passes an unnamed argument.
  return `${propertyName(name ?? "")}${required ? "" : "?"}: ${textOf(type)}${takesNull ? " | null" : ""};`;
}

/** Returns the result type. Rows of a table have the types of their columns; other values are nullable unless a comment tag says otherwise. */
function returnsType({ returns, comment }: Routine, textOf: TypeText): string {
  const value = returns.columns.size > 0 ? objectText(returns.columns.values(), textOf) : textOf(returns.type);
  if (returns.shape === "scalar" && !returns.set && !hasSmartTag(comment, "notNull")) return `${value} | null`;
  return returns.set ? listText(value) : value;
}

/** Tells supabase-js that the function returns rows of a table, which can be selected from. */
function rowsOptions(routine: Routine, catalog: Catalog): string | null {
  const { from, to } = rowTablesOf(routine, catalog);
  if (!to) return null;
  const { returns } = routine;
  const fields = [
    `from: ${JSON.stringify(from?.name ?? "*")};`,
    `to: ${JSON.stringify(to.name)};`,
    `isOneToOne: ${!returns.set || returns.estimatedRows === 1};`,
    `isSetofReturn: ${returns.set};`,
  ];
  return `SetofOptions: {\n${indented(fields.join("\n"))}\n};`;
}

/** Returns the table of the first argument and the table of the result. */
function rowTablesOf({ arguments: [first], returns }: Routine, catalog: Catalog) {
  return {
    from: first ? tableOf(first.type, catalog) : null,
    to: returns.columns.size === 0 ? tableOf(returns.type, catalog) : null,
  };
}

function tableOf(type: DataType, catalog: Catalog): CatalogTable | null {
  const row = baseTypeOf(type);
  const table = row.kind === "composite" && row.table ? catalog.findTable(row.table) : undefined;
  return table && catalog.schemas.get(table.schema)?.exposed ? table : null;
}

/** Returns the TypeScript type of a Postgres type's JSON, without null. */
type TypeText = (type: DataType) => string;

const BASE_TYPES: Readonly<Record<string, string>> = {
  bool: "boolean",
  int2: "number",
  int4: "number",
  int8: "number",
  float4: "number",
  float8: "number",
  numeric: "number",
  oid: "number",
  json: "Json",
  jsonb: "Json",
  record: "Record<string, unknown>",
  void: "undefined",
};
/** Types of extensions, in any schema. */
const JSON_TYPES = ["geometry", "geography", "hstore"];

/** Types of exposed schemas are referred to by name; all others are expanded. */
function makeTypeText({ schemas, findTable }: Catalog): TypeText {
  const nameOf = ({ schema, name }: DataType, group: string) =>
    `Database[${JSON.stringify(schema)}]["${group}"][${JSON.stringify(name)}]`;

  const rowText = (type: DataType): string => {
    const table = findTable(type);
    const row = `${nameOf(type, table?.kind.endsWith("view") ? "Views" : "Tables")}["Row"]`;
    const computed = table ? computedColumns(table).map(({ name }) => JSON.stringify(name)) : [];
    return computed.length > 0 ? `Omit<${row}, ${computed.join(" | ")}>` : row;
  };

  const textOf: TypeText = (type) => {
    const isPrinted = schemas.get(type.schema)?.exposed === true;
    switch (type.kind) {
      case "base":
      case "pseudo":
        return baseText(type);
      case "range":
      case "multirange":
        return "string";
      case "domain":
        return textOf(type.over);
      case "array":
        return listText(textOf(type.element));
      case "enum":
        return isPrinted ? nameOf(type, "Enums") : enumText(type.values);
      case "composite":
        if (!isPrinted) return objectText(type.attributes.values(), textOf);
        return type.table ? rowText(type) : nameOf(type, "CompositeTypes");
    }
  };
  return textOf;
}

function listText(item: string): string {
  return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
}

function enumText(values: readonly string[]): string {
  return values.map((value) => JSON.stringify(value)).join(" | ") || "never";
}

function objectText(attributes: Iterable<TypeAttribute>, textOf: TypeText): string {
  return `{ ${[...attributes].map((attribute) => attributeText(attribute, textOf)).join(" ")} }`;
}

/** Members of composite values are nullable unless a comment tag says otherwise. */
function attributeText({ name, type, comment }: TypeAttribute, textOf: TypeText): string {
  return `${propertyName(name)}: ${textOf(type)}${hasSmartTag(comment, "notNull") ? "" : " | null"};`;
}

function baseText({ schema, name, kind }: BaseType): string {
  if (schema === "pg_catalog" && Object.hasOwn(BASE_TYPES, name)) return BASE_TYPES[name]!;
  if (JSON_TYPES.includes(name)) return "Json";
  return kind === "pseudo" ? "unknown" : "string";
}

/** The functions of a row that are selected by name. Row types of arguments and results do not have them. */
function computedColumns({ schema, computedColumns }: CatalogTable): Routine[] {
  return [...computedColumns.values()].filter((routine) => routine.schema === schema && !routine.returns.set);
}
