import { execute } from "grafast";
import { type DocumentNode, GraphQLError, type GraphQLSchema, getOperationAST, parse, validate } from "grafast/graphql";
import type pg from "pg";
import { type Catalog, type CatalogTable, exposedSchemas } from "#catalog";
import { type BuiltSchema, type CallerDatabase, makeWithPgClient } from "#graphql/schema";
import { explainStatement, inRolledBackTransaction } from "#operations/inspect";
import { quotedName } from "#postgres/client";
import { findNamedRelations } from "#postgres/database";
import type { Statement, StatementContext, StatementResult } from "#postgres/statement";
import { UsageError } from "./command/command.ts";

/** One statement of a GraphQL query, with its rows for the caller and for the owner, who bypasses row-level security. */
export type ExplainedStatement = {
  readonly tables: readonly CatalogTable[];
  readonly seen: StatementRows;
  readonly all: StatementRows;
  readonly plan: string;
};

type StatementRows = StatementResult["rows"];

type ExplainQueryDependencies = {
  readonly built: Pick<BuiltSchema, "schema" | "resolvedPreset">;
  readonly catalog: Catalog;
  readonly context: StatementContext;
  /** A connection with the login role of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
};

/** Runs a query as the caller, and each of its statements as the owner too. */
export async function explainQuery(
  text: string,
  dependencies: ExplainQueryDependencies,
): Promise<readonly ExplainedStatement[]> {
  const { built, catalog, context, login, owner } = dependencies;
  const document = parseDocument(text, built.schema);
  if (getOperationAST(document)?.operation !== "query")
    throw new UsageError("Only queries are supported, no mutations or subscriptions.");

  const statements: Statement[] = [];
  await inRolledBackTransaction(login, context, { asRole: true }, async () => {
    const withPgClient = makeWithPgClient(makeRecorder(login, statements), context, { readOnly: true });
    const contextValue = { pgSettings: null, withPgClient };
    const { schema, resolvedPreset } = built;
    const result = await execute({ schema, document, resolvedPreset, contextValue, middleware: null });
    const [error] = ("errors" in result ? result.errors : null) ?? [];
    if (error) throw error.originalError ?? error;
  });

  const explained: ExplainedStatement[] = [];
  for (const statement of statements) {
    const [seen, plan] = await inRolledBackTransaction(login, context, { asRole: true }, async () => [
      (await runStatement(login, statement)).rows,
      await explainStatement(login, statement),
    ]);
    const all = await inRolledBackTransaction(
      owner,
      context,
      { asRole: false },
      async () => (await runStatement(owner, statement)).rows,
    );
    explained.push({ tables: tablesOf(statement, catalog), seen, all, plan });
  }
  return explained;
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

/** Runs statements on one client, and records them. */
function makeRecorder(client: pg.ClientBase, statements: Statement[]): CallerDatabase {
  const run = (statement: Statement) => {
    statements.push(statement);
    return runStatement(client, statement);
  };
  return {
    run: (_context, statement) => run(statement),
    runEach: (_context, all) => all.map(run),
    runTogether: () => Promise.reject(new TypeError("A query writes nothing")),
    transaction: () => Promise.reject(new TypeError("A query needs no transaction of its own")),
  };
}

/** Runs a statement without parsing values, like the service. */
async function runStatement(client: pg.ClientBase, { text, values }: Statement): Promise<StatementResult> {
  const types = { getTypeParser: () => (value: unknown) => value };
  const { rows, rowCount } = await client.query({ text, values: [...values], rowMode: "array", types: types as never });
  return { rows: rows as unknown as StatementRows, rowCount: rowCount ?? 0, fields: null };
}

function tablesOf({ text }: Statement, catalog: Catalog): CatalogTable[] {
  const named = new Set(findNamedRelations(text));
  return exposedSchemas(catalog)
    .flatMap(({ tables }) => [...tables.values()])
    .filter(({ schema, name }) => named.has(quotedName(schema, name)));
}
