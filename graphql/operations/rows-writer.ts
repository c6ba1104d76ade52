import { TYPES } from "@dataplan/pg";
import pg from "pg";
import type { Catalog, DirectRelationship, QualifiedName } from "#catalog";
import {
  bindRequest,
  explainGroupError,
  explainNestedError,
  explainRowsError,
  makeRequestPlanner,
  type PlanRequest,
} from "#planner";
import type { InsertIntent, ResponseOptions, SelectItem, UpdateIntent } from "#planner/intent";
import {
  type Codec,
  keyOf,
  type PgRelation,
  type PgTable,
  RESULT_SETTING,
  type RowInput,
  type RowsWrite,
} from "#plugins";
import { failedStatementOf, type SharedRunOptions } from "#postgres/database";
import type { ParameterValue, Statement, StatementContext, StatementResult } from "#postgres/statement";
import { ApiError } from "#runtime";
import { type JsonObject, parseJsonExactly } from "#runtime/json";
import { toPgText } from "../compile/text-values.ts";
import type { CallerDatabase, WriteRows } from "./caller-database.ts";

/** The statements that write rows and keep their keys for the statement that reads them. */
type PlannedStatements = {
  readonly statements: readonly Statement[];
  /** The error with its place in the input; `failed` is the index of the statement. */
  readonly explain: (error: unknown, failed: number | null) => unknown;
};

/** Makes the writer of rows for a caller's operations, in a database or an open transaction. */
export type MakeWriteRows = (database: Pick<CallerDatabase, "runTogether">, context: StatementContext) => WriteRows;

const RESPONSE: ResponseOptions = {
  formats: [{ kind: "media", type: "application/json" }],
  includesBody: true,
  maxAffected: null,
};

/** Rows are planned as those of the REST interfaces are. */
export function makeRowsWriter(catalog: () => Catalog): MakeWriteRows {
  const plan = makeRequestPlanner({
    aggregates: false,
    maxRows: null,
    safeWrites: false,
    legacyTargetNames: false,
    explainEnabled: false,
    neverStreams: true,
  });
  return (database, context) => async (rows, statement, options) => {
    const planned =
      rows.kind === "nested insert"
        ? planNestedInsert(rows.row, plan, catalog(), context.role)
        : planRowsWrite(rows, plan, catalog(), context.role);
    return runPlanned(database, context, planned, statement, options);
  };
}

function planNestedInsert(row: RowInput, plan: PlanRequest, catalog: Catalog, role: string): PlannedStatements {
  const { nested, plan: response } = plan(toNestedIntent(row), RESPONSE, catalog, role);
  if (!nested || response.kind !== "write" || response.change.kind !== "nested insert") {
    throw new TypeError("An input without rows");
  }
  const { setting, columns } = response.change.saved;
  const positions = keyOf(row.table)!.map((column) => columns.findIndex(({ name }) => name === column));
  const { steps, statements } = nested;
  return {
    statements: [...statements, keepKey(setting, positions)],
    explain: (error, failed) => explainNestedError(error, steps, failed),
  };
}

type ListedRows = Exclude<RowsWrite, { readonly kind: "nested insert" }>;

/** The keys are the body of the response. */
function planRowsWrite(write: ListedRows, plan: PlanRequest, catalog: Catalog, role: string): PlannedStatements {
  if (write.rows.length === 0) return { statements: [KEEP_NO_KEYS], explain: (error) => error };
  const intent = toListIntent(write);
  const planned = plan(intent, { ...RESPONSE, keepsBodyIn: RESULT_SETTING }, catalog, role);
  const prepared = bindRequest(planned, intent);
  return {
    statements: [prepared.statement],
    explain(error, failed) {
      if (failed !== 0 || planned.plan.kind !== "write") return error;
      if (isSecondUpsert(error)) return secondUpsert(error);
      const explained = explainGroupError(prepared, error, failed);
      return write.kind === "upsert" ? explainRowsError(explained, intent, planned.plan.table) : explained;
    },
  };
}

/** Postgres does not say which row. The SQLSTATE is also that of queries in triggers. */
function isSecondUpsert(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && error.code === "21000" && error.routine === "ExecOnConflictUpdate";
}

function secondUpsert(cause: pg.DatabaseError): ApiError {
  return new ApiError("invalid", "PGRST198", "Two rows of the input have the same key", {
    hint: "Send one row for each key. Nothing was changed.",
    cause,
  });
}

const KEEP_NO_KEYS: Statement = {
  text: `select pg_catalog.set_config('${RESULT_SETTING}', '[]', true)`,
  values: [],
};

async function runPlanned(
  database: Pick<CallerDatabase, "runTogether">,
  context: StatementContext,
  { statements, explain }: PlannedStatements,
  statement: Statement,
  options: SharedRunOptions,
): Promise<StatementResult> {
  try {
    const results = await database.runTogether(context, [...statements, statement], options);
    return results.at(-1)!;
  } catch (error) {
    throw explain(error, failedStatementOf(error));
  }
}

/** Keeps the values at these positions of the first saved row, under the name that the next statement reads. */
function keepKey(setting: string, positions: readonly number[]): Statement {
  const key =
    "select pg_catalog.json_agg(pg_catalog.current_setting($1)::pg_catalog.json->0->>i order by n) from pg_catalog.unnest($2::int[]) with ordinality as u(i, n)";
  return {
    text: `select pg_catalog.set_config('${RESULT_SETTING}', (${key})::pg_catalog.text, true)`,
    values: [setting, `{${positions}}`],
  };
}

/** Returns the keys of the written rows. */
function intentFor(table: PgTable) {
  const select = keyOf(table)!.map((column): SelectItem => {
    const field = { name: column, path: [] };
    return { kind: "column", field, alias: null, cast: null, aggregate: null };
  });
  const selection = { select, conditions: [], orders: [], ranges: [] };
  return { target: nameOf(table), selection, returned: "rows", count: null } as const;
}

function toListIntent(write: ListedRows): InsertIntent | UpdateIntent {
  const { table, rows } = write;
  const writer = new NestedRecordWriter();
  const columns = [...new Set(rows.flatMap((row) => [...row.columns.keys()]))];
  const incompleteColumns = columns.filter((column) => rows.some((row) => !row.columns.has(column)));
  const json = Buffer.from(JSON.stringify(rows.map((row) => writer.toRecord(row))));
  const payload = { json, columns, isArray: true, incompleteColumns };
  const common = { ...intentFor(table), payload };
  if (write.kind === "update") return { ...common, kind: "update", missingAsDefault: false, key: keyOf(table)! };
  const upsert = { resolution: write.resolution, onConflict: write.key, keepsKey: true } as const;
  return { ...common, kind: "insert", missingAsDefault: true, upsert, single: false };
}

function toNestedIntent(row: RowInput): InsertIntent {
  const writer = new NestedRecordWriter();
  const rows = [writer.toRecord(row)];
  return {
    ...intentFor(row.table),
    kind: "insert",
    payload: { json: Buffer.from("[]"), columns: [], isArray: true },
    missingAsDefault: true,
    upsert: null,
    single: false,
    nested: { rows, isList: false, columns: null, relations: writer.relations },
  };
}

/** The separator between the name of a field and a number; neither names of GraphQL nor paths contain it. */
export const NESTED_KEY_SEPARATOR = ":";

/** Writes rows as the planner reads them. Each relation has a key of its own, whatever the names of its fields and columns are. */
class NestedRecordWriter {
  readonly relations = new Map<string, DirectRelationship>();
  readonly #keys = new Map<PgRelation, string>();

  toRecord({ table, columns, related }: RowInput): JsonObject {
    const values = [...columns].map(([column, value]) => {
      return [column, toJsonValue(value, table.codec.attributes[column]!.codec)];
    });
    const nested = related.map(({ relation, field, rows }) => {
      const records = rows?.map((row) => this.toRecord(row)) ?? null;
      return [this.#keyOf(table, relation, field), relation.isUnique ? (records?.[0] ?? null) : records];
    });
    return Object.fromEntries([...values, ...nested]);
  }

  #keyOf(table: PgTable, relation: PgRelation, field: string): string {
    const known = this.#keys.get(relation);
    if (known !== undefined) return known;
    const key = `${field}${NESTED_KEY_SEPARATOR}${this.relations.size}`;
    this.#keys.set(relation, key);
    this.relations.set(key, toRelationship(table, relation));
    return key;
  }
}

function toRelationship(table: PgTable, relation: PgRelation): DirectRelationship {
  const { isReferencee, isUnique, localAttributes, remoteAttributes, remoteResource } = relation;
  const columns = localAttributes.map((source, index) => ({ source, target: remoteAttributes[index]! }));
  return {
    kind: isReferencee ? (isUnique ? "one-to-one" : "one-to-many") : "many-to-one",
    source: nameOf(table),
    target: nameOf(remoteResource as PgTable),
    // Names the relationship in messages of ambiguous names, which do not occur here.
    constraint: "",
    columns,
    keyAt: isReferencee ? "target" : "source",
  };
}

function nameOf({ extensions }: PgTable): QualifiedName {
  const { schemaName, name } = extensions!.pg!;
  return { schema: schemaName, name };
}

/** Text is read by the input function of the column's type, as a parameter is. */
function toJsonValue(value: unknown, codec: Codec): unknown {
  const text: ParameterValue = value == null ? null : toPgText(codec.toPg(value));
  return text !== null && isJsonCodec(codec) ? parseJsonExactly(String(text)) : text;
}

function isJsonCodec(codec: Codec): boolean {
  if (codec.domainOfCodec) return isJsonCodec(codec.domainOfCodec);
  return codec.name === TYPES.json.name || codec.name === TYPES.jsonb.name;
}
