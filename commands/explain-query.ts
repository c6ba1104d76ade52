import "./graphile-env.ts";
import type pg from "pg";
import { execute } from "postgraphile/grafast";
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  parse,
  validate,
} from "postgraphile/graphql";
import type { Catalog } from "../engine/catalog/catalog.ts";
import { exposedSchemas } from "../engine/catalog/exposed-schemas.ts";
import type { Table } from "../engine/catalog/tables.ts";
import { namedRelations } from "../engine/database/named-relations.ts";
import type { Context, Result, Statement } from "../engine/database/statement.ts";
import { explainStatement, undone } from "../engine/inspect/undone.ts";
import { quotedName } from "../engine/quoted-name.ts";
import type { BuiltSchema } from "../plugins/serve/make-schema.ts";
import { type CallerDatabase, makeWithPgClient } from "../plugins/serve/pg-client.ts";
import { UsageError } from "./command.ts";

/** One statement of a GraphQL query, and what comes of it for the caller and for somebody whom no policy binds. */
export type ExplainedStatement = {
  readonly tables: readonly Table[];
  readonly seen: Rows;
  readonly all: Rows;
  readonly plan: string;
};

type Rows = Result["rows"];

type ExplainQueryDependencies = {
  readonly built: Pick<BuiltSchema, "schema" | "resolvedPreset">;
  readonly catalog: Catalog;
  readonly context: Context;
  /** As the login of requests. */
  readonly login: pg.ClientBase;
  readonly owner: pg.ClientBase;
};

/** Runs a query as the caller, and each of its statements again as the owner. */
export async function explainQuery(
  text: string,
  means: ExplainQueryDependencies,
): Promise<readonly ExplainedStatement[]> {
  const { built, catalog, context, login, owner } = means;
  const document = readDocument(text, built.schema);
  if (getOperationAST(document)?.operation !== "query")
    throw new UsageError("Ask for one query: others change something.");

  const statements: Statement[] = [];
  await undone(login, context, { asRole: true }, async () => {
    const withPgClient = makeWithPgClient(recorder(login, statements), context, { readOnly: true });
    const contextValue = { pgSettings: null, withPgClient };
    const { schema, resolvedPreset } = built;
    const result = await execute({ schema, document, resolvedPreset, contextValue, middleware: null });
    const [error] = ("errors" in result ? result.errors : null) ?? [];
    if (error) throw error.originalError ?? error;
  });

  const explained: ExplainedStatement[] = [];
  for (const statement of statements) {
    const [seen, plan] = await undone(login, context, { asRole: true }, async () => [
      (await ask(login, statement)).rows,
      await explainStatement(login, statement),
    ]);
    const all = await undone(owner, context, { asRole: false }, async () => (await ask(owner, statement)).rows);
    explained.push({ tables: tablesOf(statement, catalog), seen, all, plan });
  }
  return explained;
}

function readDocument(text: string, schema: GraphQLSchema): DocumentNode {
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

/** Asks one client, and remembers what it was asked. */
function recorder(client: pg.ClientBase, statements: Statement[]): CallerDatabase {
  const run = (statement: Statement) => {
    statements.push(statement);
    return ask(client, statement);
  };
  return {
    run: (_context, statement) => run(statement),
    runEach: (_context, all) => all.map(run),
    transaction: () => Promise.reject(new TypeError("A query needs no transaction of its own")),
  };
}

/** Values as Postgres writes them, as the engine reads them. */
async function ask(client: pg.ClientBase, { text, values }: Statement): Promise<Result> {
  const types = { getTypeParser: () => (value: unknown) => value };
  const { rows, rowCount } = await client.query({ text, values: [...values], rowMode: "array", types: types as never });
  return { rows: rows as unknown as Rows, rowCount: rowCount ?? 0, fields: null };
}

function tablesOf({ text }: Statement, catalog: Catalog): Table[] {
  const named = new Set(namedRelations(text));
  return exposedSchemas(catalog)
    .flatMap(({ tables }) => [...tables.values()])
    .filter(({ schema, name }) => named.has(quotedName(schema, name)));
}
