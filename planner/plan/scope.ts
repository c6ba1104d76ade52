import {
  baseTypeOf,
  type Catalog,
  type CatalogTable,
  type DataType,
  type OwnValue,
  ownValuesOf,
  type TypeAttribute,
} from "#catalog";
import type { FieldReference } from "../intent.ts";
import { type CompositeRow, columnExpression, type ValueExpression } from "./selection.ts";

/** The rows that names in one selection refer to. */
export type SelectScope = {
  /** The alias in the statement; Postgres includes it in error messages. */
  readonly alias: string;
  /** The name in our error messages. */
  readonly name: string;
  /** Null if the rows are not of a table: then they have no relationships. */
  readonly table: CatalogTable | null;
  readonly columns: ReadonlyMap<string, TypeAttribute>;
  /** Columns whose values the role reads in its own rows only. */
  readonly ownValues: ReadonlyMap<string, OwnValue>;
  /** The types of computed fields. */
  readonly computed: ReadonlyMap<string, DataType>;
  readonly depth: number;
  /** The aliases of this and all outer selections. */
  readonly takenAliases: ReadonlySet<string>;
  /** How to pass the row to a function if it has lost its type. */
  readonly composite: CompositeRow | null;
  /** The names that the selection uses; that of `ALL_COLUMNS` for all columns. */
  readonly usedNames: Set<string>;
};

type OuterScope = Pick<SelectScope, "depth" | "takenAliases">;

/** The scope of rows that are selected from a table, with the privileges of the role. */
export function tableScope(
  table: CatalogTable,
  outer: OuterScope & { readonly alias: string },
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): SelectScope {
  return { ...tableRowScope(table, outer), ownValues: ownValuesOf(catalog, role, table) };
}

/** The scope of rows of a table's type that are values, such as the result of a function. */
export function tableRowScope(
  table: CatalogTable,
  { alias, ...outer }: OuterScope & { readonly alias: string },
): SelectScope {
  const computed = new Map([...table.computedColumns].map(([name, routine]) => [name, routine.returns.type]));
  return { ...rowScope(alias, table.columns, outer), name: table.name, table, computed };
}

const NO_OWN_VALUES: SelectScope["ownValues"] = new Map();

/** The scope of rows that are not of a table. */
export function rowScope(
  alias: string,
  columns: SelectScope["columns"],
  { depth, takenAliases }: OuterScope,
): SelectScope {
  return {
    alias,
    name: alias,
    table: null,
    columns,
    ownValues: NO_OWN_VALUES,
    computed: new Map(),
    depth,
    takenAliases: new Set(takenAliases).add(alias),
    composite: null,
    usedNames: new Set(),
  };
}

/** Refers to a name of the row, whether or not it is a known column. */
export function useColumn(scope: SelectScope, name: string): ValueExpression {
  const own = scope.ownValues.get(name);
  if (own) return { kind: "own value", by: own.function, key: useColumn(scope, own.key) };
  scope.usedNames.add(name);
  return columnExpression(scope.alias, name);
}

/** Postgres truncates longer names, so two could become equal. */
const MAX_NAME_BYTES = 63;

/** An alias that no outer selection uses: `films`, or `films_1` if nested. */
export function chooseAlias(preferred: string, depth: number, takenAliases: ReadonlySet<string>): string {
  const suffix = depth === 0 ? "" : `_${depth}`;
  let alias = appendSuffix(preferred, suffix);
  for (let attempt = 2; takenAliases.has(alias); attempt++) alias = appendSuffix(preferred, `${suffix}_${attempt}`);
  return alias;
}

function appendSuffix(name: string, suffix: string): string {
  let text = name;
  while (Buffer.byteLength(text + suffix) > MAX_NAME_BYTES) text = [...text].slice(0, -1).join("");
  return text + suffix;
}

/** A column, or the value at its JSON path. Postgres rejects unknown names (42703). */
export function planField({ name, path }: FieldReference, scope: SelectScope): ValueExpression {
  const whole = useColumn(scope, name);
  if (path.length === 0) return whole;
  return { kind: "json", of: whole, convert: !isJsonType(typeOfField(name, scope)), path };
}

/** The value for clients: a domain may have a cast to JSON. */
export function planOutput(field: FieldReference, scope: SelectScope, catalog: Catalog): ValueExpression {
  const value = planField(field, scope);
  const by = field.path.length === 0 ? findRepresentation(catalog, sqlTypeOfField(field.name, scope), "json") : null;
  return by === null ? value : { kind: "represented", by, of: value };
}

/** The function that parses a filter's text to the field's domain. */
export function filterReader({ name, path }: FieldReference, scope: SelectScope, catalog: Catalog): string | null {
  return path.length === 0 ? findRepresentation(catalog, "text", sqlTypeOfField(name, scope)) : null;
}

/** The function of the cast between the types, if any. */
export function findRepresentation(catalog: Catalog, source: string | null, target: string | null): string | null {
  return catalog.representations.find((known) => known.source === source && known.target === target)?.function ?? null;
}

/**
 * Whether a type of Postgres has no operators of its own, but those of text, inet or anyarray: Postgres would prefer any on the search path
 * whose operands are of the type itself.
 */
function isComparedAsAnother(type: DataType): boolean {
  if (type.kind === "array") return isBuiltInType(type.element) && type.element.name !== "json";
  return type.schema === "pg_catalog" && (type.name === "varchar" || type.name === "cidr");
}

/** The schema of the type's `=` and `<>`, so that they need not be on the search path. */
export function operatorSchemaOf(
  type: DataType | null | undefined,
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): string | null {
  const base = type && baseTypeOf(type);
  if (base && isComparedAsAnother(base)) return "pg_catalog";
  const schema = base?.kind === "base" ? base.operatorSchema : null;
  // Without USAGE on the schema Postgres rejects the qualified name; unqualified, it compares the values as their base types.
  return schema && catalog.hasPrivilege(role, "usage", schema) ? schema.name : null;
}

/** Whether functions and operators of Postgres itself are meant for values of this type, whatever else is on the search path. */
export function isBuiltInType(type: DataType | null): boolean {
  const base = type && baseTypeOf(type);
  return (
    base?.schema === "pg_catalog" || base?.kind === "enum" || base?.kind === "range" || base?.kind === "multirange"
  );
}

/** Whether a field is a text of Postgres, whose functions and operators are meant whatever else is on the search path. */
export function isPlainText({ name, path }: FieldReference, scope: SelectScope): boolean {
  if (path.length > 0) return path.at(-1)!.arrow === "->>";
  const type = typeOfField(name, scope);
  return type !== null && isBuiltInType(type) && ["text", "varchar", "bpchar"].includes(baseTypeOf(type).name);
}

export function needsTsvectorConversion({ name }: FieldReference, scope: SelectScope): boolean {
  const type = typeOfField(name, scope);
  return type === null || baseTypeOf(type).name !== "tsvector";
}

/** The name in the response: `data->a->>b` is b, and `data->0` is data. */
export function fieldOutputName({ name, path }: FieldReference): string {
  // A key may be empty, but a name may not.
  const key = path.findLast((step) => typeof step.key === "string" && step.key !== "")?.key;
  return typeof key === "string" ? key : name;
}

export function typeOfField(name: string, scope: SelectScope): DataType | null {
  return scope.columns.get(name)?.type ?? scope.computed.get(name) ?? null;
}

function sqlTypeOfField(name: string, scope: SelectScope): string | null {
  return scope.columns.get(name)?.sqlType ?? null;
}

function isJsonType(type: DataType | null): boolean {
  return type?.schema === "pg_catalog" && (type.name === "json" || type.name === "jsonb");
}
