import { type CatalogColumn, type CatalogTable, type ColumnPair, operatorSchemaOf } from "#catalog";
import { ApiError } from "#runtime";
import type { InsertIntent, NestedRows, ResponseOptions } from "../intent/intent.ts";
import { findTable } from "./find-target.ts";
import { isReferenced, type NestedRelation, type NestedRow, type NestedTable, readNestedRows } from "./nested-rows.ts";
import { type NestedStep, type RowSaver, type StepDraft, toPositionColumn } from "./nested-step.ts";
import type {
  NestedColumn,
  NestedInsertPlan,
  PlanOptions,
  RecordColumn,
  RowLink,
  SavedRows,
  WritePlan,
} from "./plan.ts";
import { planWrite } from "./plan-write.ts";
import { makeUnusedNames, planMissingValue, planRecordColumn, recordsAlias, unboundedType } from "./records.ts";
import type { PlanContext } from "./selection-context.ts";

/** A nested insert: the statements that insert rows, in their order, and the one that reads the response. */
export type NestedPlan = { readonly steps: readonly NestedStep[]; readonly response: WritePlan };

export type NestedInsertIntent = InsertIntent & { readonly nested: NestedRows };

/** Plans the statements of one transaction: only later statements show a statement's rows to their policies and triggers. */
export function planNestedInsert(
  intent: NestedInsertIntent,
  response: ResponseOptions,
  context: PlanContext,
  options: PlanOptions,
): NestedPlan {
  if (intent.upsert) throw notPossible("A nested insert cannot resolve conflicts: rows are only inserted.");
  const table = findTable(intent.target, context.catalog, context.role);
  const written = planWrite(intent, response, context, options);
  if (written.format.kind === "plan") throw notPossible("A nested insert has several statements, so it has no plan.");
  const { missingAsDefault } = intent;
  const planner = new NestedPlanner(context, missingAsDefault);
  const root = planner.insertRows(readNestedRows(intent.nested, table, { ...context, missingAsDefault }), null);
  const { schema, name, primaryKey } = table;
  const isRead = intent.returned === "rows" && primaryKey.length > 0;
  const columns = isRead ? primaryKey : returnedColumns(written, table);
  for (const column of columns) isRead ? root.require(column) : root.save(column);
  const change: WritePlan["change"] = {
    kind: "nested insert",
    table: { schema, name },
    where: [],
    saved: root.saved,
    read: isRead ? "by key" : "as saved",
    columns,
  };
  return { steps: planner.drafts.flatMap((draft) => draft.toSteps()), response: { ...written, change } };
}

/** The columns to return if there is no key: then the rows are returned as they were inserted. */
function returnedColumns({ result: { wholeRow, names } }: WritePlan, table: CatalogTable): readonly string[] {
  const computed = names.find((name) => !table.columns.has(name));
  if (computed === undefined) return wholeRow ? [...table.columns.keys()] : names;
  throw notPossible(`'${table.name}' has no primary key, so '${computed}' cannot be read after a nested insert.`);
}

export function notPossible(details: string): ApiError {
  return new ApiError("invalid", "PGRST127", "Feature not implemented", { details });
}

/** A row that contains the rows of a statement, or the row on the other side of a junction. */
type LinkSource = {
  readonly insert: RowSaver;
  /** `source` is the column of the rows to insert. */
  readonly columns: readonly ColumnPair[];
  pointerOf(row: NestedRow, index: number): number | null;
};

export class NestedPlanner {
  /** The drafts in the order of their statements. */
  readonly drafts: StepDraft[] = [];
  readonly #context: PlanContext;
  readonly #missingAsDefault: boolean;
  #settings = 0;

  constructor(context: PlanContext, missingAsDefault: boolean) {
    this.#context = context;
    this.#missingAsDefault = missingAsDefault;
  }

  /** Inserts rows that are referred to first, then the rows themselves, then those that refer to them. */
  insertRows(rows: NestedTable, above: LinkSource | null): InsertDraft {
    const relations = [...rows.relations.values()];
    const links = relations
      .filter(({ relationship }) => isReferenced(relationship))
      .map((relation) => toReferenceLink(relation, this.insertRows(relation.rows, null)));
    const insert = this.#add(rows, above ? [...links, above] : links);
    for (const relation of relations) {
      if (!isReferenced(relation.relationship)) this.#insertBelow(relation, insert);
    }
    return insert;
  }

  #insertBelow({ relationship, rows }: NestedRelation, above: InsertDraft): void {
    if (relationship.kind !== "many-to-many") {
      const columns = relationship.columns.map(({ source, target }) => ({ source: target, target: source }));
      this.insertRows(rows, { insert: above, columns, pointerOf: ({ parent }) => parent });
      return;
    }
    const { junction, sourceColumns, targetColumns } = relationship;
    const target = this.insertRows(rows, null);
    const table = this.#context.catalog.findTable(junction)!;
    const junctionRows = rows.rows.map((row) => ({
      ...row,
      values: new Map(),
      references: new Map(),
      nulls: new Set<string>(),
      named: new Map(),
    }));
    this.#add({ table, rows: junctionRows, relations: new Map(), columns: new Set() }, [
      {
        insert: above,
        columns: sourceColumns.map((pair) => ({ source: pair.junction, target: pair.source })),
        pointerOf: ({ parent }) => parent,
      },
      {
        insert: target,
        columns: targetColumns.map((pair) => ({ source: pair.junction, target: pair.target })),
        pointerOf: (_row, index) => index,
      },
    ]);
  }

  #add(rows: NestedTable, links: readonly LinkSource[]): InsertDraft {
    const setting = this.nextSetting();
    const insert = new InsertDraft({
      rows,
      links,
      setting,
      context: this.#context,
      missingAsDefault: this.#missingAsDefault,
    });
    this.drafts.push(insert);
    return insert;
  }

  /** An unused name for saved rows. */
  nextSetting(): string {
    this.#settings += 1;
    return `planner.nested_${this.#settings}`;
  }
}

function toReferenceLink(relation: NestedRelation, insert: InsertDraft): LinkSource {
  const { relationship } = relation;
  const columns = "columns" in relationship ? relationship.columns : [];
  return { insert, columns, pointerOf: ({ references }) => references.get(relation) ?? null };
}

type DraftParts = {
  readonly rows: NestedTable;
  readonly links: readonly LinkSource[];
  readonly setting: string;
  readonly context: PlanContext;
  readonly missingAsDefault: boolean;
};

/** A statement whose saved columns are not known yet: they depend on the following statements. */
class InsertDraft implements StepDraft, RowSaver {
  readonly #parts: DraftParts;
  readonly #saved = new Set<string>();
  readonly #required = new Set<string>();

  constructor(parts: DraftParts) {
    this.#parts = parts;
    for (const { insert, columns } of parts.links) for (const { target } of columns) insert.require(target);
  }

  save(name: string): void {
    this.#saved.add(name);
  }

  require(name: string): void {
    this.#saved.add(name);
    this.#required.add(name);
  }

  /** The saved rows, complete when all statements have been added. */
  get saved(): SavedRows {
    const { rows, setting } = this.#parts;
    const columns = [...this.#saved].map((name) => {
      const column = rows.table.columns.get(name)!;
      return { name, sqlType: unboundedType(column), operatorSchema: this.#operatorSchemaOf(column) };
    });
    return { setting, columns };
  }

  toSteps(): readonly NestedStep[] {
    const { rows, links } = this.#parts;
    const { schema, name } = rows.table;
    const unusedName = makeUnusedNames(rows.table);
    const ordinal = unusedName("row");
    const rowLinks = links.map(({ insert, pointerOf, columns }, index) => {
      const link = { alias: `linked_${index + 1}`, pointer: unusedName(`link_${index + 1}`), saved: insert.saved };
      return { link, columns, pointers: rows.rows.map(pointerOf) };
    });
    const columns = this.#planColumns(rowLinks, unusedName);
    const records: RecordColumn[] = [
      ...columns.flatMap(({ record }) => record ?? []),
      ...columns.flatMap(({ confirmed }) => confirmed?.record ?? []),
      ...[ordinal, ...rowLinks.map(({ link }) => link.pointer)].map(toPositionColumn),
    ];
    const payload = rows.rows.map(({ values, nulls }, row) =>
      Object.fromEntries([
        ...[...nulls].map((column) => [column, null]),
        ...values,
        ...columns.flatMap(({ confirmed }) => (confirmed ? [[confirmed.record.name, confirmed.valueOf(row)]] : [])),
        [ordinal, row + 1],
        ...rowLinks.map(({ link, pointers }) => [link.pointer, pointers[row] === null ? null : pointers[row]! + 1]),
      ]),
    );
    const plan: NestedInsertPlan = {
      kind: "insert rows",
      table: { schema, name },
      records: { alias: recordsAlias(rows.table), isArray: true, byColumn: false, rowOf: null, columns: records },
      ordinal,
      columns: columns.map(({ column }) => column),
      links: rowLinks.map(({ link }) => link),
      saved: this.saved,
      required: [...this.#required],
    };
    return [{ plan, table: rows.table, rows: rows.rows, payload: Buffer.from(JSON.stringify(payload)) }];
  }

  #planColumns(links: readonly LinkedRows[], unusedName: (name: string) => string): DraftColumn[] {
    const { rows } = this.#parts;
    const linked = links.flatMap(({ columns }) => columns.map(({ source }) => source));
    const nulls = rows.rows.flatMap((row) => [...row.nulls]);
    const names = new Set([...rows.columns, ...linked, ...nulls]);
    return [...names].sort().map((name) => this.#planColumn(rows.table.columns.get(name)!, links, unusedName));
  }

  #planColumn(column: CatalogColumn, links: readonly LinkedRows[], unusedName: (name: string) => string): DraftColumn {
    const { rows, missingAsDefault, context } = this.#parts;
    const { name } = column;
    const sources = links.flatMap(({ link, columns, pointers }) =>
      columns
        .filter(({ source }) => source === name)
        .map(({ target }) => ({ link, column: target, isOptional: pointers.includes(null), pointers })),
    );
    const isAlwaysLinked = sources.some(({ isOptional }) => !isOptional);
    const isNamed = rows.columns.has(name);
    const isGiven = isNamed || rows.rows.some(({ nulls }) => nulls.has(name));
    const missingValue = planMissingValue(column, rows.table);
    const isLinked = (row: number) => sources.some(({ pointers }) => pointers[row] !== null);
    const usesDefault =
      (missingAsDefault || !isNamed) &&
      rows.rows.some(({ values, nulls }, row) => !values.has(name) && !nulls.has(name) && !isLinked(row));
    const record =
      isGiven && !isAlwaysLinked ? planRecordColumn(column, usesDefault ? missingValue : null, context.catalog) : null;
    const confirmedValue = (row: number) => (isLinked(row) ? (rows.rows[row]!.values.get(name) ?? null) : null);
    const isConfirmed = isNamed && rows.rows.some((_row, index) => confirmedValue(index) !== null);
    const confirmed = isConfirmed
      ? {
          record: { ...planRecordColumn(column, null, context.catalog), name: unusedName(`given_${name}`) },
          valueOf: confirmedValue,
        }
      : null;
    return {
      record,
      confirmed,
      column: {
        name,
        sqlType: unboundedType(column),
        operatorSchema: this.#operatorSchemaOf(column),
        isGiven: record !== null,
        missingValue: isAlwaysLinked || isGiven ? null : missingValue,
        sources: sources.map(({ pointers: _, ...source }) => source),
        confirmed: confirmed?.record.name ?? null,
      },
    };
  }

  #operatorSchemaOf({ type }: CatalogColumn): string | null {
    return operatorSchemaOf(type, this.#parts.context);
  }
}

/** The earlier rows that the rows of one statement refer to. */
type LinkedRows = {
  readonly link: RowLink;
  readonly columns: readonly ColumnPair[];
  readonly pointers: readonly (number | null)[];
};

type DraftColumn = {
  readonly column: NestedColumn;
  readonly record: RecordColumn | null;
  readonly confirmed: { readonly record: RecordColumn; valueOf(row: number): unknown } | null;
};
