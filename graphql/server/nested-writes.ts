import { TYPES } from "@dataplan/pg";
import type { Catalog, DirectRelationship, QualifiedName } from "#catalog";
import {
  explainNestedError,
  type InsertIntent,
  makeRequestPlanner,
  type NestedStep,
  type ResponseOptions,
  type SelectItem,
} from "#planner";
import { type Codec, keyOf, type PgRelation, type PgTable, RESULT_SETTING, type RowInput } from "#plugins";
import {
  failedStatementOf,
  type ParameterValue,
  type SharedRunOptions,
  type Statement,
  type StatementContext,
  type StatementResult,
} from "#postgres/database";
import { type JsonObject, parseJsonExactly } from "#runtime/json";
import { type CallerDatabase, type InsertNested, toPgText } from "./pg-client.ts";

/** The statements that insert a row with its related rows, and what they insert. */
type NestedWrite = {
  readonly steps: readonly NestedStep[];
  /** One for each of them, and one that keeps the row's key for the statement that reads the row. */
  readonly statements: readonly Statement[];
};

/** For the operations of a caller, in a database or an open transaction. */
export type MakeInsertNested = (
  database: Pick<CallerDatabase, "runTogether">,
  context: StatementContext,
) => InsertNested;

const RESPONSE: ResponseOptions = {
  formats: [{ kind: "media", type: "application/json" }],
  includesBody: true,
  maxAffected: null,
};

/** Nested inputs are planned as the nested inserts of the REST interfaces are. */
export function makeNestedInserts(catalog: () => Catalog): MakeInsertNested {
  const planWrite = makeNestedWritePlanner(catalog);
  return (database, context) => async (row, statement, options) =>
    runNestedWrite(database, context, planWrite(row, context.role), statement, options);
}

function makeNestedWritePlanner(catalog: () => Catalog): (row: RowInput, role: string) => NestedWrite {
  const plan = makeRequestPlanner({
    aggregates: false,
    maxRows: null,
    safeWrites: false,
    legacyTargetNames: false,
    explainEnabled: false,
    neverStreams: true,
  });
  return (row, role) => {
    const { nested, plan: response } = plan(toIntent(row), RESPONSE, catalog(), role);
    if (!nested || response.kind !== "write" || response.change.kind !== "nested insert") {
      throw new TypeError("An input without rows");
    }
    const { setting, columns } = response.change.saved;
    const positions = keyOf(row.table)!.map((column) => columns.findIndex(({ name }) => name === column));
    const { steps, statements } = nested;
    return { steps, statements: [...statements, keepKey(setting, positions)] };
  };
}

async function runNestedWrite(
  database: Pick<CallerDatabase, "runTogether">,
  context: StatementContext,
  { steps, statements }: NestedWrite,
  statement: Statement,
  options: SharedRunOptions,
): Promise<StatementResult> {
  try {
    const results = await database.runTogether(context, [...statements, statement], options);
    return results.at(-1)!;
  } catch (error) {
    throw explainNestedError(error, steps, failedStatementOf(error));
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

function toIntent(row: RowInput): InsertIntent {
  const writer = new NestedRecordWriter();
  const rows = [writer.toRecord(row)];
  const select = keyOf(row.table)!.map((column): SelectItem => {
    const field = { name: column, path: [] };
    return { kind: "column", field, alias: null, cast: null, aggregate: null };
  });
  return {
    kind: "insert",
    target: nameOf(row.table),
    selection: { select, conditions: [], orders: [], ranges: [] },
    returned: "rows",
    count: null,
    payload: { json: Buffer.from("[]"), columns: [], isArray: true },
    missingAsDefault: true,
    upsert: null,
    single: false,
    nested: { rows, isList: false, columns: null, relations: writer.relations },
  };
}

/** Between the name of a field and a number; neither names of GraphQL nor paths have it. */
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
