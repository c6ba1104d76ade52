import type { ByOid } from "./by-oid.ts";
import type { ConstraintRow } from "./constraints.ts";
import type { StoredKey, Surface, Surfaces } from "./relationships.ts";
import type { Table } from "./tables.ts";

/** Where the stored tables can be seen: as themselves, and through views. */
export function findSurfaces(
  tables: ReadonlyMap<number, Table>,
  { tableTargets }: ByOid,
  isExposed: (table: Table) => boolean,
): Surfaces {
  const storedBeneath = (view: Table) => new Set((tableTargets.get(view.oid) ?? []).map(({ table }) => table));

  const asItself = (table: Table): Surface => ({ table, namesOf: (position) => namesAt(table, position) });
  const throughView = (view: Table, stored: number): Surface => ({
    table: view,
    namesOf: (column) =>
      (tableTargets.get(view.oid) ?? [])
        .filter((target) => target.table === stored && target.column === column)
        .flatMap(({ position }) => namesAt(view, position)),
  });

  const exposedViews = new Map<number, Surface[]>();
  for (const view of tables.values()) {
    if (!isExposed(view)) continue;
    for (const stored of storedBeneath(view)) {
      const surfaces = exposedViews.get(stored);
      if (surfaces) surfaces.push(throughView(view, stored));
      else exposedViews.set(stored, [throughView(view, stored)]);
    }
  }

  return {
    of(stored) {
      const table = tables.get(stored);
      const views = exposedViews.get(stored) ?? [];
      return table && isExposed(table) ? [asItself(table), ...views] : views;
    },
    storedIn: (table) => [
      { stored: table.oid, surface: asItself(table) },
      ...[...storedBeneath(table)].map((stored) => ({ stored, surface: throughView(table, stored) })),
    ],
  };
}

function namesAt({ columns }: Table, position: number): string[] {
  for (const column of columns.values()) if (column.position === position) return [column.name];
  return [];
}

/** One-to-one is a foreign key whose columns are a primary key or unique constraint; a unique index does not count, as in PostgREST. */
export function toStoredKeys(constraints: readonly ConstraintRow[]): StoredKey[] {
  const spell = (table: number, columns: readonly number[]) => [table, ...columns.toSorted((a, b) => a - b)].join(" ");
  const unique = new Set<string>();
  for (const { contype, table, columns } of constraints) {
    if (contype === "p" || contype === "u") unique.add(spell(table, columns!));
  }
  return constraints
    .filter(({ contype }) => contype === "f")
    .map(({ name, table, columns, target, targetColumns }) => ({
      name,
      unique: unique.has(spell(table, columns!)),
      source: { table, columns: columns! },
      target: { table: target, columns: targetColumns! },
    }));
}
