import { type DocumentNode, GraphQLError, type GraphQLSchema, getOperationAST, parse, validate } from "grafast/graphql";
import type pg from "pg";
import { type Catalog, type CatalogTable, exposedSchemas } from "#catalog";
import { NotCompiled, OperationPlans } from "#graphql/schema";
import { explainStatement, inRolledBackTransaction } from "#operations/inspect";
import { quotedName } from "#postgres/client";
import { findNamedRelations } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import { runToCompletion } from "#runtime/concurrency";
import { isJsonObject, parseJsonExactly } from "#runtime/json";
import { UsageError } from "./command/command.ts";

/** The statement of a GraphQL query, and its data for the caller beside those for the owner, who bypasses row-level security. */
export type ExplainedQuery = {
  readonly tables: readonly CatalogTable[];
  readonly parts: readonly ComparedPart[];
  readonly plan: string;
};

/** The rows of a list, of which those within the rows of another list are counted together, or another value, with what the caller and the owner have. */
export type ComparedPart = { readonly path: string } & (
  | { readonly kind: "rows"; readonly seen: number; readonly all: number }
  | { readonly kind: "value"; readonly seen: unknown; readonly all: unknown }
);

type ExplainQueryDependencies = {
  readonly schema: GraphQLSchema;
  readonly catalog: Catalog;
  readonly context: StatementContext;
  /** A connection with the login role of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
};

/** Runs the statement of a query as the caller, and as the owner too. */
export async function explainQuery(
  text: string,
  { schema, catalog, context, login, owner }: ExplainQueryDependencies,
): Promise<ExplainedQuery> {
  const statement = compileQuery(text, schema);
  const [seen, plan] = await inRolledBackTransaction(login, context, { asRole: true }, async () => [
    await readData(login, statement),
    await explainStatement(login, statement),
  ]);
  const all = await inRolledBackTransaction(owner, context, { asRole: false }, () => readData(owner, statement));
  return { tables: tablesOf(statement, catalog), parts: [...compareData("", [seen], [all], false)], plan };
}

/** The caller of `why` has no limit. */
const MAX_BYTES = 2 ** 31 - 1;

function compileQuery(text: string, schema: GraphQLSchema): Statement {
  const document = parseDocument(text, schema);
  const operation = getOperationAST(document);
  if (operation?.operation !== "query")
    throw new UsageError("Only queries are supported, no mutations or subscriptions.");
  try {
    const plans = new OperationPlans({ schema, document, operation, reserve: () => {} });
    return runToCompletion(plans.bind({}, MAX_BYTES, true)).steps[0]!.statement;
  } catch (error) {
    if (!(error instanceof NotCompiled)) throw error;
    throw new UsageError(`The query does not run as one statement: ${error.message}`);
  }
}

function parseDocument(text: string, schema: GraphQLSchema): DocumentNode {
  try {
    const document = parse(text);
    const [fault] = validate(schema, document);
    if (fault) throw fault;
    return document;
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new UsageError(error.message);
  }
}

/** Reads the data without parsing values, like the service. */
async function readData(client: pg.ClientBase, { text, values }: Statement): Promise<unknown> {
  const types = { getTypeParser: () => (value: unknown) => value };
  const { rows } = await client.query({ text, values: [...values], rowMode: "array", types: types as never });
  return parseJsonExactly(String(rows[0]![0]));
}

/** Compares the values that the caller and the owner have at a path: one each, or those of all rows of the lists around it. */
function* compareData(
  path: string,
  seen: readonly unknown[],
  all: readonly unknown[],
  isWithinList: boolean,
): Generator<ComparedPart> {
  const both = [...seen, ...all];
  if (both.some(isListOfRows)) {
    const [seenRows, allRows] = [seen, all].map((values) => values.filter(isListOfRows).flat());
    yield { path, kind: "rows", seen: seenRows!.length, all: allRows!.length };
    yield* compareData(path, seenRows!, allRows!, true);
  } else if (isWithinList ? both.some(isJsonObject) : both.every(isJsonObject)) {
    const [seenObjects, allObjects] = [seen.filter(isJsonObject), all.filter(isJsonObject)];
    const keys = new Set(both.filter(isJsonObject).flatMap(Object.keys));
    for (const key of keys) {
      const [own, whole] = [seenObjects.map((object) => object[key]), allObjects.map((object) => object[key])];
      yield* compareData(path === "" ? key : `${path}.${key}`, own, whole, isWithinList);
    }
  } else if (!isWithinList) yield { path, kind: "value", seen: seen[0], all: all[0] };
}

function isListOfRows(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.every((item) => item === null || isJsonObject(item));
}

function tablesOf({ text }: Statement, catalog: Catalog): CatalogTable[] {
  const named = new Set(findNamedRelations(text));
  return exposedSchemas(catalog)
    .flatMap(({ tables }) => [...tables.values()])
    .filter(({ schema, name }) => named.has(quotedName(schema, name)));
}
