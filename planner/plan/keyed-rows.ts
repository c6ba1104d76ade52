import { type CatalogColumn, type CatalogTable, operatorSchemaOf } from "#catalog";
import { ApiError } from "#runtime";
import { joinPath, type NestedRow } from "./nested-rows.ts";
import { type NestedStep, type RowSaver, type StepDraft, toPositionColumn } from "./nested-step.ts";
import type { MatchedColumn, NestedChangePlan, RowLink, SavedRows } from "./plan.ts";
import { columnNotFound, makeUnusedNames, planRecordColumn, recordsAlias, unboundedType } from "./records.ts";
import type { WherePredicate } from "./selection.ts";
import type { PlanContext } from "./selection-context.ts";

export type ColumnPairs = readonly { readonly source: string; readonly target: string }[];
/** The position of a payload row among the rows that a statement saves. */
export type Placement = { readonly saver: RowSaver; readonly index: number };
type SentRow = Pick<NestedRow, "path" | "values" | "nulls" | "parent">;

/** Rows that were saved before, and `pointers`: for each row of the payload, the saved row that it refers to. */
type Link = {
  readonly saver: RowSaver;
  readonly columns: ColumnPairs;
  readonly pointers: readonly (number | null)[];
};

type Parts = {
  readonly table: CatalogTable;
  readonly rows: readonly SentRow[];
  readonly context: PlanContext;
};

/** The positions of the rows that others refer to; null: a row refers to none. */
export type References = { readonly columns: ColumnPairs; readonly placements: readonly (Placement | null)[] };

type ReferencingParts = Parts & {
  readonly setting: string;
  readonly references: readonly References[];
};

/** The names and the records of one statement. */
class StepRecords {
  readonly table: CatalogTable;
  readonly links: readonly { readonly link: RowLink; readonly columns: ColumnPairs }[];
  readonly #parts: Parts;
  readonly #linked: readonly Link[];
  readonly #ordinal: string;

  constructor(parts: Parts, linked: readonly Link[]) {
    const unusedName = makeUnusedNames(parts.table);
    this.table = parts.table;
    this.#parts = parts;
    this.#linked = linked;
    this.#ordinal = unusedName("row");
    this.links = linked.map(({ saver, columns }, index) => {
      const link = { alias: `linked_${index + 1}`, pointer: unusedName(`link_${index + 1}`), saved: saver.saved };
      return { link, columns };
    });
  }

  /** The columns for which the rows have values. */
  get given(): readonly string[] {
    return [...new Set(this.#parts.rows.flatMap(({ values, nulls }) => [...values.keys(), ...nulls]))];
  }

  get linked(): readonly string[] {
    return [...new Set(this.links.flatMap(({ columns }) => columns.map(({ source }) => source)))];
  }

  match(name: string): MatchedColumn {
    const sources = this.links.flatMap(({ link, columns }) =>
      columns.filter(({ source }) => source === name).map(({ target }) => ({ link, column: target })),
    );
    const column = columnOf(this.table, name);
    return { name, sqlType: unboundedType(column), operatorSchema: schemaOf(column, this.#parts.context), sources };
  }

  toStep(own: OwnPlan, matches: readonly MatchedColumn[], where: readonly WherePredicate[] = []): NestedStep {
    const { table, rows, context } = this.#parts;
    const { schema, name } = table;
    const compared = matches.filter(({ sources }) => sources.length === 0).map((match) => match.name);
    const columns = [...new Set([...this.given, ...compared])].map((given) =>
      planRecordColumn(columnOf(table, given), null, context.catalog),
    );
    const pointers = this.links.map(({ link }) => link.pointer);
    const records = {
      alias: recordsAlias(table),
      isArray: true,
      byColumn: false,
      rowOf: null,
      columns: [...columns, ...[this.#ordinal, ...pointers].map(toPositionColumn)],
    };
    const payload = rows.map(({ values, nulls }, row) =>
      Object.fromEntries([
        ...[...nulls].map((column) => [column, null]),
        ...values,
        [this.#ordinal, row + 1],
        ...this.#linked.map((link, index) => [pointers[index], positionOf(link.pointers[row]!)]),
      ]),
    );
    const links = this.links.map(({ link }) => link);
    const common = { table: { schema, name }, records, ordinal: this.#ordinal, links, matches, where };
    return { plan: { ...common, ...own }, table, rows, payload: Buffer.from(JSON.stringify(payload)) };
  }
}

type OwnPlan = NestedChangePlan extends infer Plan
  ? Plan extends NestedChangePlan
    ? Omit<Plan, "table" | "records" | "ordinal" | "links" | "matches" | "where">
    : never
  : never;

function positionOf(index: number | null): number | null {
  return index === null ? null : index + 1;
}

function columnOf(table: CatalogTable, name: string): CatalogColumn {
  const column = table.columns.get(name);
  if (!column) throw columnNotFound(name, table);
  return column;
}

/** Postgres accepts no values for other columns: a row with such a key is changed if it exists, and otherwise not found. */
function isInsertable({ identity, generated }: CatalogColumn): boolean {
  return identity !== "always" && generated === null;
}

function schemaOf({ type }: CatalogColumn, context: PlanContext): string | null {
  return operatorSchemaOf(type, context);
}

/** The columns of rows that later statements refer to. */
class SavedColumns implements RowSaver {
  readonly #parts: Pick<ReferencingParts, "table" | "context" | "setting">;
  readonly #names = new Set<string>();

  constructor(parts: Pick<ReferencingParts, "table" | "context" | "setting">) {
    this.#parts = parts;
  }

  require(name: string): void {
    this.#names.add(name);
  }

  get saved(): SavedRows {
    const { table, context, setting } = this.#parts;
    const columns = [...this.#names].map((name) => {
      const column = columnOf(table, name);
      return { name, sqlType: unboundedType(column), operatorSchema: schemaOf(column, context) };
    });
    return { setting, columns };
  }
}

/** The references of a group belong to one statement, so either all rows have them or none. */
function toLinks({ references, rows }: ReferencingParts): Link[] {
  return references.flatMap(({ columns, placements }) => {
    const saver = placements.find((placement) => placement !== null)?.saver;
    if (!saver) return [];
    for (const row of rows) for (const { source } of columns) if (row.values.has(source)) throw givenTwice(row, source);
    return { saver, columns, pointers: placements.map((placement) => placement?.index ?? null) };
  });
}

function givenTwice({ path }: SentRow, name: string): ApiError {
  return new ApiError("invalid", "PGRST196", `The value of '${name}' is that of the related row`, {
    details: { path: joinPath(path, name) },
    hint: "Leave it out: it is taken from the related row.",
  });
}

function requireLinked(links: readonly Link[]): void {
  for (const { saver, columns } of links) for (const { target } of columns) saver.require(target);
}

type KeyedParts = ReferencingParts & {
  readonly parents: { readonly saver: RowSaver; readonly columns: ColumnPairs } | null;
  /** `update`: only rows of the parent. `link`: rows with nothing but links; with `linked` they exist. `put`: the one row of the request. */
  readonly mode: "update" | "upsert" | "link" | "linked" | "put";
  readonly where: readonly WherePredicate[];
};

/** Rows that are found by their key. */
export class KeyedRows extends SavedColumns implements StepDraft {
  readonly #parts: KeyedParts;
  readonly #links: readonly Link[];

  constructor(parts: KeyedParts) {
    super(parts);
    this.#parts = parts;
    const { parents, rows } = parts;
    const above = parents ? [{ ...parents, pointers: rows.map(({ parent }) => parent) }] : [];
    this.#links = [...above, ...toLinks(parts)];
    requireLinked(this.#links);
  }

  toSteps(): readonly NestedStep[] {
    const { table, parents, mode, where } = this.#parts;
    const records = new StepRecords(this.#parts, this.#links);
    const ofParent = parents?.columns.map(({ source }) => source) ?? [];
    // A junction's key may have further columns.
    const key = mode === "link" || mode === "linked" ? records.linked : table.primaryKey;
    const matches = key.map((name) => records.match(name));
    const byParent = [...new Set([...key, ...ofParent])].map((name) => records.match(name));
    // A foreign key that is given as well must match the parent's key.
    const confirmed = records.given.filter((name) => ofParent.includes(name));
    const saved = [...byParent, ...confirmed.map((name) => ({ ...records.match(name), sources: [] }))];
    const named = [...new Set([...records.given, ...records.linked])];
    const changed = named.filter((name) => !key.includes(name) && !(mode === "update" && ofParent.includes(name)));
    const set = changed.map((name) => records.match(name));
    const found = mode === "update" ? byParent : matches;
    const steps: NestedStep[] = [];
    if (set.length > 0) steps.push(records.toStep({ kind: "update rows", set }, found, where));
    // A row with nothing but a key must exist.
    const hasValues = named.some((name) => !key.includes(name) && !records.linked.includes(name));
    const mayInsert = mode === "link" || mode === "put" || (mode === "upsert" && hasValues);
    if (mayInsert && named.every((name) => isInsertable(columnOf(table, name)))) {
      const all = named.map((name) => records.match(name));
      const read = this.saved.columns.map(({ name }) => name);
      steps.push(records.toStep({ kind: "insert missing rows", set: all, read }, matches, where));
      // Every row exists now, and no other row refers to one: so the caller need not be able to read them.
      if (mode === "upsert" && read.length === 0) return steps;
    }
    if (mode !== "link") steps.push(records.toStep({ kind: "save rows", saved: this.saved }, saved, where));
    return steps;
  }
}

type ParentParts = ReferencingParts & { readonly conditions: readonly WherePredicate[] };

/** The row that the conditions of the request find. */
export class ParentUpdate extends SavedColumns implements StepDraft {
  readonly #parts: ParentParts;
  readonly #links: readonly Link[];

  constructor(parts: ParentParts) {
    super(parts);
    this.#parts = parts;
    this.#links = toLinks(parts);
    requireLinked(this.#links);
  }

  toSteps(): readonly NestedStep[] {
    const records = new StepRecords(this.#parts, this.#links);
    const names = [...new Set([...records.given, ...records.linked])];
    const set = names.map((name) => records.match(name));
    const { conditions } = this.#parts;
    return [records.toStep({ kind: "update parent", set, conditions, saved: this.saved }, [])];
  }
}

type RemovalParts = Omit<Parts, "rows"> & {
  /** `rows` are the positions of the parents whose rows are replaced. */
  readonly parents: { readonly saver: RowSaver; readonly columns: ColumnPairs; readonly rows: readonly number[] };
  readonly by: "delete" | "unlink";
  /** The rows that stay, with the saved row that they refer to. */
  readonly kept: readonly { readonly row: SentRow; readonly placement: Placement | null }[];
  /** `source` is the column of the table, `target` that of the saved row. */
  readonly matches: ColumnPairs;
};

/** Removes the rows of the parents that are not in the payload. */
export class RowRemoval implements StepDraft {
  readonly #parts: RemovalParts;
  readonly #links: readonly Link[];

  constructor(parts: RemovalParts) {
    this.#parts = parts;
    const { parents, kept, matches } = parts;
    const savers = new Set(kept.flatMap(({ placement }) => placement?.saver ?? []));
    const targets = [...savers].map((saver) => ({
      saver,
      columns: matches,
      pointers: kept.map(({ placement }) => (placement?.saver === saver ? placement.index : null)),
    }));
    this.#links = [{ ...parents, pointers: kept.map(({ row }) => row.parent) }, ...targets];
    requireLinked(this.#links);
  }

  toSteps(): readonly NestedStep[] {
    const { table, context, parents, kept, matches, by } = this.#parts;
    const names = matches.map(({ source }) => source);
    const rows = kept.map(({ row }) => ({
      ...row,
      values: new Map([...row.values].filter(([name]) => names.includes(name))),
      nulls: new Set<string>(),
    }));
    const records = new StepRecords({ table, rows, context }, this.#links);
    const columns = parents.columns.map(({ source }) => records.match(source));
    const own = { kind: "remove rows", by, parents: parents.rows.map((row) => row + 1), columns } as const;
    return [
      records.toStep(
        own,
        names.map((name) => records.match(name)),
      ),
    ];
  }
}
