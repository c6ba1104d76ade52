import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { ColumnPair, Relationship } from "../../../engine/catalog/relationships.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { operatorSchemaOf, typeOf } from "./field.ts";
import { pickAlias, type Scope, tableScope, use } from "./scope.ts";
import { column, type Source, type Where } from "./selection.ts";

/** Where a selection starts, and what ties its rows to the rows around it. */
export type Start = { readonly scope: Scope; readonly source: Source; readonly join: readonly Where[] };

type Planning = { readonly catalog: Catalog; readonly role: string };

export function reach(relationship: Relationship, from: Scope, planning: Planning): Start {
  const table = planning.catalog.findTable(relationship.target)!;
  switch (relationship.kind) {
    case "many-to-many":
      return reachThrough(relationship, table, from, planning);
    case "computed":
      return reachByFunction(relationship, table, from);
    default: {
      const scope = scopeWithin(from, table, pickAlias(table.name, from.depth + 1, from.taken));
      const join = relationship.columns.map((pair) => same(scope.alias, from, pair, planning));
      return { scope, source: { kind: "table", name: nameOf(table), through: null }, join };
    }
  }
}

function reachThrough(
  relationship: Relationship & { kind: "many-to-many" },
  table: Table,
  from: Scope,
  planning: Planning,
): Start {
  const { junction, sourceColumns, targetColumns } = relationship;
  const own = scopeWithin(from, table, pickAlias(table.name, 0, from.taken));
  const alias = pickAlias(junction.name, 0, own.taken);
  const scope = { ...own, taken: new Set(own.taken).add(alias) };
  const join = sourceColumns.map((pair) => same(alias, from, { source: pair.source, target: pair.junction }, planning));
  const on = targetColumns.map((pair) => {
    return { ...pair, operatorSchema: operatorSchemaOf(table.columns.get(pair.target)?.type, planning) };
  });
  const through = { table: junction, alias, on };
  return { scope, source: { kind: "table", name: nameOf(table), through }, join };
}

function reachByFunction({ routine }: Relationship & { kind: "computed" }, table: Table, from: Scope): Start {
  const scope = scopeWithin(from, table, pickAlias(table.name, from.depth + 1, from.taken));
  for (const name of from.composed?.columns ?? []) from.used.add(name);
  const row = { of: from.alias, as: from.composed };
  return { scope, source: { kind: "row function", routine: nameOf(routine), row }, join: [] };
}

function scopeWithin({ depth, taken }: Scope, table: Table, alias: string): Scope {
  return tableScope(table, { alias, depth: depth + 1, taken });
}

function same(alias: string, from: Scope, { source, target }: ColumnPair, planning: Planning): Where {
  const operatorSchema = operatorSchemaOf(typeOf(source, from), planning);
  return { kind: "same", left: column(alias, target), operatorSchema, right: use(from, source) };
}

function nameOf({ schema, name }: { readonly schema: string; readonly name: string }) {
  return { schema, name };
}
