import { type Catalog, type CatalogTable, mayNameTable, type Relationship } from "#catalog";
import { ApiError } from "#runtime";
import { isExactJsonObject, type JsonObject } from "#runtime/json";
import type { NestedRows } from "../intent/intent.ts";
import { columnNotFound, findJsonReader } from "./records.ts";
import { findRelationship, isToOne } from "./relationship.ts";

/** The limit of levels, since a payload within the body limit could still need many statements, whose rows are all kept in memory. */
const MAX_LEVELS = 8;
const MAX_TABLES = 64;
const MAX_ROWS = 10_000;

/** The rows of one relation under all rows above: one statement inserts them. */
export type NestedTable = {
  readonly table: CatalogTable;
  readonly rows: NestedRow[];
  /** The relations by key. */
  readonly relations: Map<string, NestedRelation>;
  /** The columns for which the rows have values. */
  readonly columns: Set<string>;
};

export type InsertableRelationship = Exclude<Relationship, { readonly kind: "computed" }>;
export type NestedRelation = { readonly relationship: InsertableRelationship; readonly rows: NestedTable };

export type NestedRow = {
  /** `lines/2`: keys and positions from the top of the payload. */
  readonly path: string;
  readonly values: ReadonlyMap<string, unknown>;
  /** The position of the containing row among the rows of its table. */
  readonly parent: number | null;
  /** The positions of the contained rows that this row refers to. */
  readonly references: Map<NestedRelation, number>;
  /** The columns of foreign keys whose related row is null. */
  readonly nulls: Set<string>;
  /** The relations for which the row has keys, including those with empty lists. */
  readonly named: Map<string, InsertableRelationship>;
};

type NestedRowsContext = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly schema: string;
  readonly missingAsDefault: boolean;
};

/** Sorts the rows of a nested insert by their relation, at each level. */
export function readNestedRows(nested: NestedRows, table: CatalogTable, context: NestedRowsContext): NestedTable {
  const reader = new NestedRowReader(nested, context);
  const root = reader.addTable(table);
  for (const name of nested.columns ?? []) reader.addColumn(root, name);
  nested.rows.forEach((row, index) => {
    reader.addRow(root, row, { path: nested.isList ? String(index) : "", parent: null, level: 1 });
  });
  return root;
}

/** True if the containing row refers to the contained one, so that the contained one is inserted first. */
export function isReferenced(relationship: InsertableRelationship): boolean {
  return relationship.kind !== "many-to-many" && relationship.keyAt === "source";
}

/** Some of the rows, with the rows that they contain. */
export function takeRows(from: NestedTable, indexes: readonly number[]): NestedTable {
  const places = new Map(indexes.map((old, index) => [old, index]));
  const rows = indexes.map((old) => ({ ...from.rows[old]!, references: new Map<NestedRelation, number>() }));
  const relations = new Map<string, NestedRelation>();
  for (const [key, relation] of from.relations) {
    const isBelow = !isReferenced(relation.relationship);
    const referenced = new Set(indexes.flatMap((old) => from.rows[old]!.references.get(relation) ?? []));
    const taken = [...relation.rows.rows.keys()].filter((index) =>
      isBelow ? places.has(relation.rows.rows[index]!.parent!) : referenced.has(index),
    );
    if (taken.length === 0) continue;
    const below = takeRows(relation.rows, taken);
    const placed = isBelow ? below.rows.map((row) => ({ ...row, parent: places.get(row.parent!)! })) : below.rows;
    const placesBelow = new Map(taken.map((old, index) => [old, index]));
    const kept = { relationship: relation.relationship, rows: { ...below, rows: placed } };
    relations.set(key, kept);
    indexes.forEach((old, index) => {
      const reference = from.rows[old]!.references.get(relation);
      if (reference !== undefined) rows[index]!.references.set(kept, placesBelow.get(reference)!);
    });
  }
  return { table: from.table, rows, relations, columns: new Set(rows.flatMap(({ values }) => [...values.keys()])) };
}

export function joinPath(path: string, key: string | number): string {
  return path === "" ? String(key) : `${path}/${key}`;
}

type RowPlace = { readonly path: string; readonly parent: number | null; readonly level: number };

class NestedRowReader {
  readonly #nested: NestedRows;
  readonly #context: NestedRowsContext;
  #tables = 0;
  #rows = 0;

  constructor(nested: NestedRows, context: NestedRowsContext) {
    this.#nested = nested;
    this.#context = context;
  }

  addTable(table: CatalogTable): NestedTable {
    this.#tables += 1;
    if (this.#tables > MAX_TABLES) throw tooLarge(`A nested insert may have at most ${MAX_TABLES} relations`);
    return { table, rows: [], relations: new Map(), columns: new Set() };
  }

  /** Adds a column of `columns=`, or checks that it names a relation: relations are otherwise known only from values. */
  addColumn(into: NestedTable, name: string): void {
    if (into.table.columns.has(name)) into.columns.add(name);
    else this.#findRelationship(into.table, name, name);
  }

  addRow(into: NestedTable, record: JsonObject, { path, parent, level }: RowPlace): number {
    this.#rows += 1;
    if (this.#rows > MAX_ROWS) throw tooLarge(`A nested insert may have at most ${MAX_ROWS} rows`);
    if (level > MAX_LEVELS) throw tooLarge(`A nested insert may have at most ${MAX_LEVELS} levels`, path);
    const values = new Map<string, unknown>();
    const row: NestedRow = { path, values, parent, references: new Map(), nulls: new Set(), named: new Map() };
    const index = into.rows.push(row) - 1;
    const names = level === 1 ? this.#nested.columns : null;
    for (const [key, value] of Object.entries(record)) {
      if (names && !names.includes(key)) continue;
      if (this.#isColumn(into.table, key, value)) values.set(key, value);
      else this.#addRelated(into, row, index, { key, value, level });
    }
    if (!names) this.#addColumns(into, this.#columnKeys(into.table, record), path);
    return index;
  }

  /** The keys that name columns, including those whose value is a related row instead. */
  #columnKeys({ columns }: CatalogTable, record: JsonObject): string[] {
    return Object.keys(record).filter((key) => columns.has(key) && !this.#nested.relations?.has(key));
  }

  /** Refuses rows with other keys than the first, unless missing values get defaults: such rows would get nulls. */
  #addColumns({ columns, rows }: NestedTable, keys: readonly string[], path: string): void {
    const isFirst = rows.length === 1;
    const isAlike = keys.length === columns.size && keys.every((name) => columns.has(name));
    if (!isFirst && !isAlike && !this.#context.missingAsDefault) throw keysMustMatch(path);
    for (const name of keys) columns.add(name);
  }

  #addRelated(
    into: NestedTable,
    row: NestedRow,
    index: number,
    { key, value, level }: { readonly key: string; readonly value: unknown; readonly level: number },
  ): void {
    const path = joinPath(row.path, key);
    const relationship = into.relations.get(key)?.relationship ?? this.#findRelationship(into.table, key, path);
    const records = relatedRecords(relationship, value, path);
    row.named.set(key, relationship);
    if (isReferenced(relationship) && records.length === 0) this.#addNulls(into, row, relationship);
    if (records.length === 0) return;
    const relation = this.#relation(into, key, relationship);
    records.forEach((record, position) => {
      if (!isExactJsonObject(record)) throw notAnObject(joinPath(path, position));
      const place = { path: isToOne(relationship) ? path : joinPath(path, position), level: level + 1 };
      if (!isReferenced(relationship)) this.addRow(relation.rows, record, { ...place, parent: index });
      else row.references.set(relation, this.addRow(relation.rows, record, { ...place, parent: null }));
    });
  }

  /** Sets the key's columns to null. If none of them may be null, Postgres refuses an update; an insert has defaults. */
  #addNulls({ table }: NestedTable, { nulls }: NestedRow, relationship: InsertableRelationship): void {
    if (relationship.kind === "many-to-many") return;
    const sources = relationship.columns.map(({ source }) => source);
    const nullable = sources.filter((name) => table.columns.get(name)!.nullable);
    for (const name of nullable.length > 0 || !this.#nested.update ? nullable : sources) nulls.add(name);
  }

  #relation(into: NestedTable, key: string, relationship: InsertableRelationship): NestedRelation {
    const known = into.relations.get(key);
    if (known) return known;
    const table = this.#context.catalog.findTable(relationship.target)!;
    const relation = { relationship, rows: this.addTable(table) };
    into.relations.set(key, relation);
    return relation;
  }

  /** True if the value is the column's. A foreign key's column also names its relation: then an object is the related row. */
  #isColumn(table: CatalogTable, key: string, value: unknown): boolean {
    if (this.#nested.relations?.has(key)) return false;
    const column = table.columns.get(key);
    if (!column || !isExactJsonObject(value)) return column !== undefined;
    const { catalog, role } = this.#context;
    const { kind, name } = column.baseType;
    const takesObjects = kind === "composite" || name === "json" || name === "jsonb";
    if (takesObjects || findJsonReader(column, catalog)) return true;
    // Errors name the table of the relation, so a table that the role may not see is not looked up by a column.
    return !catalog
      .referencesFrom(table)
      .some(
        ({ columns, target }) =>
          columns.length === 1 && columns[0]!.source === key && mayNameTable(catalog, role, catalog.findTable(target)!),
      );
  }

  #findRelationship(table: CatalogTable, key: string, path: string): InsertableRelationship {
    const found = this.#nested.relations?.get(key) ?? this.#findByName(table, key, path);
    if (found.kind !== "computed") return found;
    throw new ApiError("invalid", "PGRST204", `Rows cannot be inserted by the function '${found.routine.name}'`, {
      details: { path },
    });
  }

  /** `lines`, `lines!constraint` */
  #findByName(table: CatalogTable, key: string, path: string): Relationship {
    const [target = "", hint = null] = key.split("!", 2);
    const { catalog, role, schema } = this.#context;
    const name = { source: table, sourceName: table.name, schema, target, hint };
    try {
      return findRelationship(name, catalog, role);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "PGRST200") throw columnNotFound(key, table, { details: { path }, hint: error.hint });
      const { kind, code, message, hint: advice, details } = error;
      throw new ApiError(kind, code, message, { details: { path, relationships: details }, hint: advice });
    }
  }
}

function relatedRecords(relationship: InsertableRelationship, value: unknown, path: string): readonly unknown[] {
  if (value === null) return [];
  if (isToOne(relationship)) {
    if (!isExactJsonObject(value)) throw notAnObject(path);
    return [value];
  }
  if (Array.isArray(value)) return value;
  throw new ApiError("invalid", "PGRST102", `The value of '${path}' must be a list of objects`, { details: { path } });
}

function notAnObject(path: string): ApiError {
  return new ApiError("invalid", "PGRST102", `The value of '${path}' must be an object`, { details: { path } });
}

function keysMustMatch(path: string): ApiError {
  return new ApiError("invalid", "PGRST102", "All object keys must match", {
    details: { path },
    hint: "With 'Prefer: missing=default' a column that a row does not have gets its default.",
  });
}

export function repeatedKey({ name }: CatalogTable, { path }: Pick<NestedRow, "path">): ApiError {
  return new ApiError("invalid", "PGRST198", `A row of '${name}' has the key of an earlier one`, {
    details: { path },
    hint: "Send one row for each key. Nothing was changed.",
  });
}

export function tooLarge(message: string, path?: string): ApiError {
  return new ApiError("invalid", "PGRST102", message, path === undefined ? {} : { details: { path } });
}
