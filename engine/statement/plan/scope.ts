import type { Catalog } from "../../catalog/catalog.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import { baseTypeOf, type DataType, type TypeAttribute } from "../../catalog/types.ts";
import type { FieldReference } from "../intent.ts";
import { type CompositeRow, columnExpression, type ValueExpression } from "./selection.ts";

/** The rows that names in one selection are about. */
export type SelectScope = {
  /** What the rows are called in the statement; Postgres tells it to the client in its refusals. */
  readonly alias: string;
  /** What they are called in ours. */
  readonly name: string;
  /** Null when they are of no table: then nothing is related to them. */
  readonly table: CatalogTable | null;
  readonly columns: ReadonlyMap<string, TypeAttribute>;
  /** The types of what functions compute from a row. */
  readonly computed: ReadonlyMap<string, DataType>;
  readonly depth: number;
  /** The aliases of this and all selections around it. */
  readonly takenAliases: ReadonlySet<string>;
  /** How a function gets the row when the rows have lost their type. */
  readonly composite: CompositeRow | null;
  /** The names that the selection turns out to need; that of EVERY_COLUMN for all columns. */
  readonly usedNames: Set<string>;
};

type OuterScope = Pick<SelectScope, "depth" | "takenAliases">;

export function tableScope(
  table: CatalogTable,
  { alias, ...outer }: OuterScope & { readonly alias: string },
): SelectScope {
  const computed = new Map([...table.computedColumns].map(([name, routine]) => [name, routine.returns.type]));
  return { ...rowScope(alias, table.columns, outer), name: table.name, table, computed };
}

/** Of rows that are no table's. */
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
    computed: new Map(),
    depth,
    takenAliases: new Set(takenAliases).add(alias),
    composite: null,
    usedNames: new Set(),
  };
}

/** A name of a row, known or not. */
export function useColumn(scope: SelectScope, name: string): ValueExpression {
  scope.usedNames.add(name);
  return columnExpression(scope.alias, name);
}

/** Postgres cuts longer names off, and two could become one. */
const MAX_NAME_BYTES = 63;

/** A name that no selection around it has: `films`, or `films_1` within another. */
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

/** A column, or what its JSON path leads to. Postgres refuses names that the catalogue does not know (42703). */
export function planField({ name, path }: FieldReference, scope: SelectScope): ValueExpression {
  const whole = useColumn(scope, name);
  if (path.length === 0) return whole;
  return { kind: "json", of: whole, convert: !isJsonType(typeOfField(name, scope)), path };
}

/** As it is sent to clients: a domain may have a representation as JSON. */
export function planOutput(field: FieldReference, scope: SelectScope, catalog: Catalog): ValueExpression {
  const value = planField(field, scope);
  const by = field.path.length === 0 ? findRepresentation(catalog, sqlTypeOfField(field.name, scope), "json") : null;
  return by === null ? value : { kind: "represented", by, of: value };
}

/** The function that reads a filter's text as the field's domain. */
export function filterReader({ name, path }: FieldReference, scope: SelectScope, catalog: Catalog): string | null {
  return path.length === 0 ? findRepresentation(catalog, "text", sqlTypeOfField(name, scope)) : null;
}

/** The function that turns the one type into the other, where the database has one. */
export function findRepresentation(catalog: Catalog, source: string | null, target: string | null): string | null {
  return catalog.representations.find((known) => known.source === source && known.target === target)?.function ?? null;
}

/** The schema that `=` and `<>` of the type are named with, so that they need not be on the search path. */
export function operatorSchemaOf(
  type: DataType | null | undefined,
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): string | null {
  const base = type && baseTypeOf(type);
  const schema = base?.kind === "base" ? base.operatorSchema : null;
  // Without usage of the schema Postgres refuses its name, and else compares values as the types that they are taken for.
  return schema && catalog.hasPrivilege(role, "usage", schema) ? schema.name : null;
}

export function needsTsvectorConversion({ name }: FieldReference, scope: SelectScope): boolean {
  const type = typeOfField(name, scope);
  return type === null || baseTypeOf(type).name !== "tsvector";
}

/** The name that it has in the answer: `data->a->>b` is b, and `data->0` is data. */
export function fieldOutputName({ name, path }: FieldReference): string {
  // A key may be empty, and a name may not.
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
