import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { baseTypeOf, type DataType } from "../../../engine/catalog/types.ts";
import type { Field } from "../intent.ts";
import { type Scope, use } from "./scope.ts";
import type { Expression } from "./selection.ts";

/** A column, or what its JSON path leads to. Postgres refuses names that the catalogue does not know (42703). */
export function planField({ name, path }: Field, scope: Scope): Expression {
  const whole = use(scope, name);
  if (path.length === 0) return whole;
  return { kind: "json", of: whole, convert: !isJson(typeOf(name, scope)), path };
}

/** As it is sent to clients: a domain may have a representation as JSON. */
export function planOutput(field: Field, scope: Scope, catalog: Catalog): Expression {
  const value = planField(field, scope);
  const by = field.path.length === 0 ? representation(catalog, sqlTypeOf(field.name, scope), "json") : null;
  return by === null ? value : { kind: "represented", by, of: value };
}

/** The function that reads a filter's text as the field's domain. */
export function readerOf({ name, path }: Field, scope: Scope, catalog: Catalog): string | null {
  return path.length === 0 ? representation(catalog, "text", sqlTypeOf(name, scope)) : null;
}

/** The function that turns the one type into the other, where the database has one. */
export function representation(catalog: Catalog, source: string | null, target: string | null): string | null {
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
  return schema && catalog.mayRole(role, "usage", schema) ? schema.name : null;
}

export function isTextToSearch({ name }: Field, scope: Scope): boolean {
  const type = typeOf(name, scope);
  return type === null || baseTypeOf(type).name !== "tsvector";
}

/** The name that it has in the answer: `data->a->>b` is b, and `data->0` is data. */
export function outputName({ name, path }: Field): string {
  // A key may be empty, and a name may not.
  const key = path.findLast((step) => typeof step.key === "string" && step.key !== "")?.key;
  return typeof key === "string" ? key : name;
}

export function typeOf(name: string, scope: Scope): DataType | null {
  return scope.columns.get(name)?.type ?? scope.computed.get(name) ?? null;
}

function sqlTypeOf(name: string, scope: Scope): string | null {
  return scope.columns.get(name)?.sqlType ?? null;
}

function isJson(type: DataType | null): boolean {
  return type?.schema === "pg_catalog" && (type.name === "json" || type.name === "jsonb");
}
