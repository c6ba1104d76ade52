import type { Catalog } from "../../engine/catalog/catalog.ts";
import { exposedSchemas } from "../../engine/catalog/exposed-schemas.ts";
import type { Schema } from "../../engine/catalog/schemas.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { CompositeType, DataType, EnumType } from "../../engine/catalog/types.ts";
import { POSTGREST_VERSION } from "../postgrest-version.ts";
import { block, indented, property } from "./block.ts";
import { isReached, routineType } from "./routine-types.ts";
import { tableType } from "./table-types.ts";
import { attributeText, enumText, makeTypeText, type TypeText } from "./type-text.ts";

/** The exposed schemas as `createClient<Database>()` of supabase-js takes them. */
export function toClientTypes(catalog: Catalog): string {
  const exposed = exposedSchemas(catalog);
  const textOf = makeTypeText(catalog);
  const members = [
    `__InternalSupabase: { PostgrestVersion: "${POSTGREST_VERSION}" };`,
    ...exposed.map((schema) => schemaType(schema, catalog, textOf)),
  ];
  return `${JSON_TYPE}
export type Database = {
${indented(members.join("\n"))}
};

${shorthands(exposed[0]!.name)}`;
}

function schemaType(schema: Schema, catalog: Catalog, textOf: TypeText): string {
  const relations = [...schema.tables.values()].filter(({ isPartition, extension }) => !isPartition && !extension);
  const isView = ({ kind }: Table) => kind === "view" || kind === "materialized view";
  const typesOf = (tables: readonly Table[]) => tables.map((table) => tableType(table, catalog, textOf));
  const routines = [...schema.routines.values()]
    .map((overloads) => overloads.filter((routine) => routine.extension === null && isReached(routine, catalog)))
    .filter((overloads) => overloads.length > 0);
  const types = [...schema.types.values()];

  return block(schema.name, [
    block("Tables", typesOf(relations.filter((relation) => !isView(relation)))),
    block("Views", typesOf(relations.filter(isView))),
    block(
      "Functions",
      routines.map((overloads) => routineType(overloads, catalog, textOf)),
    ),
    block("Enums", types.filter(isEnum).map(enumType)),
    block(
      "CompositeTypes",
      types.filter(isComposite).map((type) => compositeType(type, textOf)),
    ),
  ]);
}

const isEnum = (type: DataType): type is EnumType => type.kind === "enum";
const isComposite = (type: DataType): type is CompositeType => type.kind === "composite" && type.table === null;

function enumType({ name, values }: EnumType): string {
  return `${property(name)}: ${enumText(values)};`;
}

function compositeType({ name, attributes }: CompositeType, textOf: TypeText): string {
  return block(
    name,
    [...attributes.values()].map((attribute) => attributeText(attribute, textOf)),
  );
}

const JSON_TYPE = `export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];
`;

/** Names for what is used most, in the default schema. */
function shorthands(schema: string): string {
  const from = `Database[${JSON.stringify(schema)}]`;
  return `type Default = ${from};
type Relations = Default["Tables"] & Default["Views"];
export type Tables<Name extends keyof Relations> = Relations[Name] extends { Row: infer Row } ? Row : never;
export type TablesInsert<Name extends keyof Relations> = Relations[Name] extends { Insert: infer Row } ? Row : never;
export type TablesUpdate<Name extends keyof Relations> = Relations[Name] extends { Update: infer Row } ? Row : never;
export type Enums<Name extends keyof Default["Enums"]> = Default["Enums"][Name];
export type CompositeTypes<Name extends keyof Default["CompositeTypes"]> = Default["CompositeTypes"][Name];
`;
}
