import type { Catalog } from "../../engine/catalog/catalog.ts";
import { hasSmartTag } from "../../engine/catalog/spoken-comment.ts";
import type { Attribute, BaseType, DataType } from "../../engine/catalog/types.ts";
import { property } from "./block.ts";
import { computedColumns } from "./computed-columns.ts";

/** What a value of a type is in JSON, as TypeScript says it; null aside. */
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
/** Of extensions, wherever those were put. */
const JSON_TYPES = ["geometry", "geography", "hstore"];

/** Types of the exposed schemas are printed there, and named here; all others are written out. */
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

export function objectText(attributes: Iterable<Attribute>, textOf: TypeText): string {
  return `{ ${[...attributes].map((attribute) => attributeText(attribute, textOf)).join(" ")} }`;
}

/** Nothing in Postgres forbids null in a value that is made of others: a comment may. */
export function attributeText({ name, type, comment }: Attribute, textOf: TypeText): string {
  return `${property(name)}: ${textOf(type)}${hasSmartTag(comment, "notNull") ? "" : " | null"};`;
}

function baseText({ schema, name, kind }: BaseType): string {
  if (schema === "pg_catalog" && Object.hasOwn(BASE_TYPES, name)) return BASE_TYPES[name]!;
  if (JSON_TYPES.includes(name)) return "Json";
  return kind === "pseudo" ? "unknown" : "string";
}
