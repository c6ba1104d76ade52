import type { Grants } from "./privileges.ts";

export type QualifiedName = { readonly schema: string; readonly name: string };

/** The possible comparison of two values of a type: by order, by equality only, or none. */
export type Comparability = "order" | "equality" | "none";

type NamedType = QualifiedName & {
  readonly oid: number;
  /** The name in SQL, quoted and qualified where necessary: `integer`, `shop."Colour"`, `text[]`. */
  readonly sqlName: string;
  readonly comment: string | null;
};

export type BaseType = NamedType & {
  readonly kind: "base" | "pseudo";
  readonly comparison: Comparability;
  /** The schema of the type's `=` and `<>` operators; null if they are in pg_catalog or do not exist. */
  readonly operatorSchema: OperatorSchema | null;
};
export type OperatorSchema = { readonly name: string; readonly grants: Grants };
export type EnumType = NamedType & { readonly kind: "enum"; readonly values: readonly string[] };
export type ArrayType = NamedType & {
  readonly kind: "array";
  readonly element: DataType;
  /** The character between the elements in text: a semicolon for boxes, a colon for PostGIS's geometries. */
  readonly delimiter: string;
};
type RangeType = NamedType & { readonly kind: "range" | "multirange"; readonly element: DataType };
type DomainType = NamedType & {
  readonly kind: "domain";
  readonly over: DataType;
  /** The name of `over` with its modifiers: `character varying(20)`. */
  readonly overSql: string;
  readonly maxLength: number | null;
  readonly notNull: boolean;
  readonly default: string | null;
  readonly checks: readonly DomainCheck[];
};
export type CompositeType = NamedType & {
  readonly kind: "composite";
  /** The table or view whose rows have this type; null for `create type … as (…)`. */
  readonly table: QualifiedName | null;
  readonly attributes: ReadonlyMap<string, TypeAttribute>;
};
export type DataType = BaseType | EnumType | ArrayType | RangeType | DomainType | CompositeType;

type DomainCheck = { readonly name: string; readonly expression: string };
export type TypeAttribute = {
  readonly name: string;
  readonly type: DataType;
  readonly sqlType: string;
  readonly comment: string | null;
};

export type CatalogTypes = {
  of(oid: number): DataType;
  readonly all: readonly DataType[];
  /** Sets the attributes of a table's row type, since columns are built after types. */
  fillRowType(relation: number, columns: ReadonlyMap<string, TypeAttribute>): void;
};

/** An implicit cast between a domain and text or json, which defines how clients see its values (PostgREST's domain representations). */
export type DomainRepresentation = {
  /** Names of the types and the function in SQL. */
  readonly source: string;
  readonly target: string;
  readonly function: string;
};

/** The pattern for names of domains that are media type handlers: `application/vnd.twkb`, or two stars. */
export const MEDIA_TYPE = "^([A-Za-z0-9.-]+/[A-Za-z0-9.+-]+|\\*/\\*)$";

/** Arrays and composite types have the comparability that holds for all their elements. */
export function comparabilityOf(dataType: DataType): Comparability {
  const type = baseTypeOf(dataType);
  switch (type.kind) {
    case "base":
    case "pseudo":
      return type.comparison;
    case "array":
      return comparabilityOf(type.element);
    case "composite": {
      const parts = [...type.attributes.values()].map((part) => comparabilityOf(part.type));
      return parts.includes("none") ? "none" : parts.includes("equality") ? "equality" : "order";
    }
    default:
      return "order";
  }
}

/** Returns the type without domains. */
export function baseTypeOf(type: DataType): DataType {
  return type.kind === "domain" ? baseTypeOf(type.over) : type;
}

/** Returns the maximum length of the type itself, or of the domain that it is based on. */
export function maxLength(type: DataType, typmod: number): number | null {
  if (type.kind === "domain") return type.maxLength;
  if (typmod < 0 || type.schema !== "pg_catalog") return null;
  switch (type.name) {
    case "varchar":
    case "bpchar":
      return typmod - 4; // the typmod includes the length word
    case "bit":
    case "varbit":
      return typmod;
    default:
      return null;
  }
}
