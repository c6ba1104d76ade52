import { type Catalog, hasSmartTag } from "../../engine/catalog/catalog.ts";
import type { Routine } from "../../engine/catalog/routines.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import type { BaseType, DataType, TypeAttribute } from "../../engine/catalog/types.ts";

/** The TypeScript type of a Postgres type's JSON, except null. */
export type TypeText = (type: DataType) => string;

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
/** Types of extensions, in whatever schema. */
const JSON_TYPES = ["geometry", "geography", "hstore"];

/** Types of exposed schemas are referred to by name; all others are expanded. */
export function makeTypeText({ schemas, findTable }: Catalog): TypeText {
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

export function listText(item: string): string {
  return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
}

export function enumText(values: readonly string[]): string {
  return values.map((value) => JSON.stringify(value)).join(" | ") || "never";
}

export function objectText(attributes: Iterable<TypeAttribute>, textOf: TypeText): string {
  return `{ ${[...attributes].map((attribute) => attributeText(attribute, textOf)).join(" ")} }`;
}

/** Members of composite values are nullable unless a comment tag says otherwise. */
export function attributeText({ name, type, comment }: TypeAttribute, textOf: TypeText): string {
  return `${propertyName(name)}: ${textOf(type)}${hasSmartTag(comment, "notNull") ? "" : " | null"};`;
}

function baseText({ schema, name, kind }: BaseType): string {
  if (schema === "pg_catalog" && Object.hasOwn(BASE_TYPES, name)) return BASE_TYPES[name]!;
  if (JSON_TYPES.includes(name)) return "Json";
  return kind === "pseudo" ? "unknown" : "string";
}

/** `name`, or `"odd name"`. */
export function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** `name: { … }`, or the empty group of supabase-js. */
export function typeBlock(name: string, members: readonly string[]): string {
  if (members.length === 0) return `${propertyName(name)}: { [_ in never]: never };`;
  return `${propertyName(name)}: {\n${indented(members.join("\n"))}\n};`;
}

export function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}

/** Functions of a row that are selected by name. Row types of arguments and results do not have them. */
export function computedColumns({ schema, computedColumns }: CatalogTable): Routine[] {
  return [...computedColumns.values()].filter((routine) => routine.schema === schema && !routine.returns.set);
}
