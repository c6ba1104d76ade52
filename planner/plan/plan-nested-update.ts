import type { CatalogTable } from "#catalog";
import { ApiError } from "#runtime";
import { toAddressText } from "#runtime/json";
import type { InsertIntent, NestedRows, ResponseOptions, UpdateIntent } from "../intent/intent.ts";
import { findTable } from "./find-target.ts";
import {
  type ColumnPairs,
  KeyedRows,
  ParentUpdate,
  type Placement,
  type References,
  RowRemoval,
} from "./keyed-rows.ts";
import {
  type InsertableRelationship,
  isReferenced,
  type NestedRow,
  type NestedTable,
  readNestedRows,
  repeatedKey,
  takeRows,
  tooLarge,
} from "./nested-rows.ts";
import type { RowSaver, StepDraft } from "./nested-step.ts";
import type { PlanOptions, WritePlan } from "./plan.ts";
import { type NestedPlan, NestedPlanner, notPossible } from "./plan-nested.ts";
import { planWrite } from "./plan-write.ts";
import type { PlanContext } from "./selection-context.ts";

/** The limit of statements: rows with other columns need other statements. */
const MAX_STEPS = 200;

export type NestedUpdateIntent = (InsertIntent | UpdateIntent) & {
  readonly nested: NestedRows & { readonly update: NonNullable<NestedRows["update"]> };
};

/** Changes the row of the request, and the rows in it by their keys. */
export function planNestedUpdate(
  intent: NestedUpdateIntent,
  response: ResponseOptions,
  context: PlanContext,
  options: PlanOptions,
): NestedPlan {
  const table = findTable(intent.target, context.catalog, context.role);
  const rows = readNestedRows(intent.nested, table, { ...context, missingAsDefault: true });
  const columns = [...rows.columns];
  const payload = intent.kind === "insert" ? { ...intent.payload, columns } : intent.payload;
  const written = planWrite({ ...intent, payload }, response, context, options);
  if (written.format.kind === "plan") throw notPossible("A nested update has several statements, so it has no plan.");
  const { schema, name, primaryKey } = table;
  if (primaryKey.length === 0)
    throw notPossible(`'${name}' has no primary key, so a nested update cannot read its row.`);
  const planner = new NestedUpdatePlanner(intent.nested.update, context);
  const root = planner.changeParent(rows, intent, written.change);
  for (const column of primaryKey) root.require(column);
  const change: WritePlan["change"] = {
    kind: "nested insert",
    table: { schema, name },
    where: [],
    saved: root.saved,
    read: "by key",
    columns: primaryKey,
  };
  return { steps: planner.steps(), response: { ...written, change } };
}

/** The containing rows; `source` is the column of the contained rows. */
type Parents = { readonly saver: RowSaver; readonly columns: ColumnPairs };

class NestedUpdatePlanner {
  readonly #mode: NonNullable<NestedRows["update"]>;
  readonly #context: PlanContext;
  readonly #inserts: NestedPlanner;

  constructor(mode: NonNullable<NestedRows["update"]>, context: PlanContext) {
    this.#mode = mode;
    this.#context = context;
    // Rows without a key may have different columns.
    this.#inserts = new NestedPlanner(context, true);
  }

  steps() {
    return this.#inserts.drafts.flatMap((draft) => draft.toSteps());
  }

  #add(draft: StepDraft): void {
    const { drafts } = this.#inserts;
    if (drafts.push(draft) > MAX_STEPS) throw tooLarge("The rows of a nested update have too many different columns");
  }

  changeParent(rows: NestedTable, intent: NestedUpdateIntent, { where }: WritePlan["change"]): RowSaver {
    const references = this.#changeReferences(rows);
    const common = { table: rows.table, rows: rows.rows, references, context: this.#context };
    const setting = this.#inserts.nextSetting();
    const parent =
      intent.kind === "update"
        ? new ParentUpdate({ ...common, setting, conditions: where })
        : new KeyedRows({ ...common, setting, parents: null, mode: "put", where });
    this.#add(parent);
    this.#changeBelow(rows, parent);
    return parent;
  }

  /** Changes the rows of one relation whose parents one statement has saved. */
  #change(rows: NestedTable, parents: Parents | null): readonly Placement[] {
    const placements: Placement[] = [];
    const isKeyed = (row: NestedRow) => hasKey(row, rows.table, parents);
    const keyed = [...rows.rows.keys()].filter((index) => isKeyed(rows.rows[index]!));
    const fresh = [...rows.rows.keys()].filter((index) => !isKeyed(rows.rows[index]!));
    refuseRepeatedKeys(rows, keyed, parents);
    this.#changeKeyed(rows, keyed, parents).forEach((placement, at) => {
      placements[keyed[at]!] = placement;
    });
    if (fresh.length === 0) return placements;
    if (this.#mode.kind === "update") throw keyRequired(rows.rows[fresh[0]!]!, rows.table);
    const above = parents && {
      insert: parents.saver,
      columns: parents.columns,
      pointerOf: ({ parent }: NestedRow) => parent,
    };
    const saver = this.#inserts.insertRows(takeRows(rows, fresh), above);
    fresh.forEach((index, at) => {
      placements[index] = { saver, index: at };
    });
    return placements;
  }

  /** Changes rows with the same columns by the same statements. */
  #changeKeyed(all: NestedTable, keyed: readonly number[], parents: Parents | null): readonly Placement[] {
    const rows = takeRows(all, keyed);
    const references = this.#changeReferences(rows);
    const placements: Placement[] = [];
    for (const indexes of groupBy(rows.rows.keys(), (index) => shapeOf(rows.rows[index]!, index, references))) {
      const taken = takeRows(rows, indexes);
      const group = new KeyedRows({
        table: rows.table,
        rows: taken.rows,
        references: references.map((each) => ({
          ...each,
          placements: indexes.map((index) => each.placements[index]!),
        })),
        context: this.#context,
        setting: this.#inserts.nextSetting(),
        parents,
        mode: this.#mode.kind === "update" ? "update" : "upsert",
        where: [],
      });
      this.#add(group);
      this.#changeBelow(taken, group);
      indexes.forEach((index, at) => {
        placements[index] = { saver: group, index: at };
      });
    }
    return placements;
  }

  /** Changes the rows that these rows refer to, before these rows. */
  #changeReferences({ relations, rows }: NestedTable): References[] {
    return [...relations.values()].flatMap((relation) => {
      const { relationship } = relation;
      if (relationship.kind === "many-to-many" || !isReferenced(relationship)) return [];
      const changed = this.#change(relation.rows, null);
      const placements = rows.map(({ references }) => {
        const index = references.get(relation);
        return index === undefined ? null : changed[index]!;
      });
      return { columns: relationship.columns, placements };
    });
  }

  /** Changes the rows that refer to these rows, after these rows. */
  #changeBelow(rows: NestedTable, saver: RowSaver): void {
    const named = new Map(rows.rows.flatMap((row) => [...row.named]));
    for (const [key, relationship] of named) {
      if (isReferenced(relationship)) continue;
      const below = rows.relations.get(key)?.rows ?? this.#noRows(relationship);
      const parents = [...rows.rows.keys()].filter((index) => rows.rows[index]!.named.has(key));
      if (relationship.kind === "many-to-many") this.#changeLinked(relationship, below, { saver, parents });
      else this.#changeChildren(relationship, below, { saver, parents });
    }
  }

  #noRows({ target }: InsertableRelationship): NestedTable {
    return { table: this.#context.catalog.findTable(target)!, rows: [], relations: new Map(), columns: new Set() };
  }

  #changeChildren(
    relationship: Exclude<InsertableRelationship, { readonly kind: "many-to-many" }>,
    below: NestedTable,
    { saver, parents }: NamingRows,
  ): void {
    const columns = relationship.columns.map(({ source, target }) => ({ source: target, target: source }));
    const above = { saver, columns };
    // This precedes the insertion of rows, which could have the same values of another unique key.
    if (this.#mode.kind === "replace") {
      const kept = below.rows.filter((row) => hasKey(row, below.table, above));
      this.#add(
        new RowRemoval({
          table: below.table,
          parents: { ...above, rows: parents },
          by: this.#mode.removes,
          kept: kept.map((row) => ({ row, placement: null })),
          matches: below.table.primaryKey.map((name) => ({ source: name, target: name })),
          context: this.#context,
        }),
      );
    }
    this.#change(below, above);
  }

  #changeLinked(
    { junction, sourceColumns, targetColumns }: InsertableRelationship & { readonly kind: "many-to-many" },
    below: NestedTable,
    { saver, parents }: NamingRows,
  ): void {
    const placements = this.#change(below, null);
    const table = this.#context.catalog.findTable(junction)!;
    const above = { saver, columns: sourceColumns.map((pair) => ({ source: pair.junction, target: pair.source })) };
    const matches = targetColumns.map((pair) => ({ source: pair.junction, target: pair.target }));
    const linked = below.rows.map((row, index) => ({ row, placement: placements[index]! }));
    if (this.#mode.kind === "replace") {
      const parts = { table, parents: { ...above, rows: parents }, by: "delete", kept: linked, matches } as const;
      this.#add(new RowRemoval({ ...parts, context: this.#context }));
    }
    for (const indexes of groupBy(linked.keys(), (index) => linked[index]!.placement.saver.saved.setting)) {
      const rows = indexes.map((index) => ({ ...linked[index]!.row, values: new Map(), nulls: new Set<string>() }));
      const reference = { columns: matches, placements: indexes.map((index) => linked[index]!.placement) };
      this.#add(
        new KeyedRows({
          table,
          rows,
          references: [reference],
          context: this.#context,
          setting: this.#inserts.nextSetting(),
          parents: above,
          mode: this.#mode.kind === "update" ? "linked" : "link",
          where: [],
        }),
      );
    }
  }
}

/** The rows that have a key for a relation, by their positions. */
type NamingRows = { readonly saver: RowSaver; readonly parents: readonly number[] };

/** True if the row's values, together with its parent's key, identify the row. */
function hasKey({ values }: NestedRow, { primaryKey }: CatalogTable, parents: Parents | null): boolean {
  const isLinked = (name: string) => parents?.columns.some(({ source }) => source === name) ?? false;
  return primaryKey.length > 0 && primaryKey.every((name) => (values.get(name) ?? null) !== null || isLinked(name));
}

function shapeOf({ values, nulls }: NestedRow, index: number, references: readonly References[]): string {
  const settings = references.map(({ placements }) => placements[index]?.saver.saved.setting);
  return JSON.stringify([[...values.keys()].sort(), [...nulls].sort(), settings]);
}

function groupBy(indexes: Iterable<number>, keyOf: (index: number) => string): Iterable<number[]> {
  return Map.groupBy(indexes, keyOf).values();
}

/** Refuses rows with equal keys: Postgres would apply any of them. A row has one parent, but may link to many rows. */
function refuseRepeatedKeys({ rows, table }: NestedTable, keyed: readonly number[], parents: Parents | null): void {
  const seen = new Set<string>();
  for (const index of keyed) {
    const { values, parent, path } = rows[index]!;
    const isWhole = parents !== null && table.primaryKey.every((name) => (values.get(name) ?? null) !== null);
    const names = table.primaryKey.map((name) => toAddressText(values.get(name)));
    const key = JSON.stringify([isWhole ? null : parent, ...names]);
    if (seen.has(key)) throw repeatedKey(table, { path });
    seen.add(key);
  }
}

function keyRequired({ path }: NestedRow, { name, primaryKey }: CatalogTable): ApiError {
  return new ApiError("invalid", "PGRST186", `A row of '${name}' has no key`, {
    details: { path },
    hint: `Send '${primaryKey.join("', '")}', or 'Prefer: nested=upsert' to insert rows without a key.`,
  });
}
