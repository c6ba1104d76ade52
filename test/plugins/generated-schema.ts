import type { PgClient, PgClientQuery, WithPgClient } from "@dataplan/pg";
import { execute, isSafeError, subscribe } from "grafast";
import { type GraphQLSchema, getOperationAST, parse, validate } from "grafast/graphql";
import { makeSchema } from "graphile-build";
import type pg from "pg";
import { afterAll, beforeAll } from "vitest";
import { errorCodeOf, toHttpError } from "../../http/http-error.ts";
import type { StatementContext } from "../../postgres/database/statement.ts";
import type { TestDatabase } from "../database.ts";
import type { Caller } from "../db/callers.ts";
import { attachPlans } from "../graphql/grafast/attach-plans.ts";
import { makeWithPgClient } from "../graphql/grafast/pg-client.ts";
import { openPreset, type PresetOptions } from "./open-preset.ts";

/** A fault as a client is told it. */
export type Fault = { readonly message: string; readonly code: string; readonly path: string };

export type Answer = {
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly data: any;
  readonly faults: readonly Fault[];
  /** The SQL it took. */
  readonly statements: readonly string[];
};

type Variables = Readonly<Record<string, unknown>>;

export type GeneratedSchema = {
  readonly schema: GraphQLSchema;
  readonly owner: pg.Client;
  readonly database: TestDatabase;
  ask(caller: Caller, source: string, variables?: Variables): Promise<Answer>;
  /** Calls `ask`, and expects no error. */
  read(caller: Caller, source: string, variables?: Variables): Promise<Answer["data"]>;
  subscribe(caller: Caller, source: string, variables: Variables, events: unknown): ReturnType<typeof subscribe>;
  /** Makes the schema anew, as the service does when the database has changed. */
  renew(): Promise<void>;
};

/** The schema that the plugins generate and the SQL it runs, without HTTP around it: for the tests of one file. */
export function useGeneratedSchema(options: PresetOptions = {}): GeneratedSchema {
  const generated = {} as { -readonly [Key in keyof GeneratedSchema]: GeneratedSchema[Key] };
  const opened = new AsyncDisposableStack();

  beforeAll(async () => {
    const { database, owner, engine, preset } = opened.use(await openPreset(options));
    let made = await makeSchema(preset);
    attachPlans(made.schema);

    const argumentsFor = (caller: Caller, source: string, variableValues: Variables, context: object) => {
      const document = parse(source);
      const readOnly = getOperationAST(document)?.operation !== "mutation";
      const withPgClient = makeWithPgClient(engine, contextOf(caller), { readOnly });
      const contextValue = { pgSettings: null, withPgClient, ...context };
      return { ...made, document, variableValues, middleware: null, contextValue };
    };

    Object.assign(generated, {
      schema: made.schema,
      owner,
      database,
      async ask(caller, source, variables = {}) {
        const invalid = validate(made.schema, parse(source));
        if (invalid.length > 0) throw new Error(invalid.map(({ message }) => message).join("\n"));
        const statements: string[] = [];
        const args = argumentsFor(caller, source, variables, {});
        const withPgClient = counted(args.contextValue.withPgClient, (text) => statements.push(text));
        const result = await execute({ ...args, contextValue: { ...args.contextValue, withPgClient } });
        if (Symbol.asyncIterator in result) throw new TypeError("This answer comes in parts");
        // Grafast's objects have no prototype, which toEqual would mind.
        return { data: structuredClone(result.data), faults: (result.errors ?? []).map(toFault), statements };
      },
      async read(caller, source, variables) {
        const { data, faults } = await generated.ask(caller, source, variables);
        if (faults.length > 0) throw new Error(JSON.stringify(faults));
        return data;
      },
      subscribe: (caller, source, variables, events) => subscribe(argumentsFor(caller, source, variables, { events })),
      async renew() {
        engine.forgetStatements();
        made = await makeSchema(preset);
        attachPlans(made.schema);
        generated.schema = made.schema;
      },
    } satisfies GeneratedSchema);
  });
  afterAll(() => opened.disposeAsync());
  return generated;
}

function contextOf({ role, sub, usersAccess = "open" }: Caller): StatementContext {
  return {
    role,
    settings: [
      ["request.jwt.claims", JSON.stringify({ role, ...(sub && { sub }) })],
      ["request.interface", "graphql"],
      ["app.users_access", usersAccess],
    ],
  };
}

function toFault(error: {
  message: string;
  path?: readonly (string | number)[] | undefined;
  originalError?: unknown;
}): Fault {
  const { originalError, message, path } = error;
  const isSafe = originalError instanceof Error && isSafeError(originalError);
  const code = isSafe ? "VALIDATION_ERROR" : errorCodeOf(toHttpError(originalError));
  return { message, code, path: path?.join(".") ?? "" };
}

function counted(withPgClient: WithPgClient, onStatement: (text: string) => void): WithPgClient {
  return (settings, work) => withPgClient(settings, (client) => work(countedClient(client, onStatement)));
}

function countedClient(client: PgClient, onStatement: (text: string) => void): PgClient {
  return {
    query: (query: PgClientQuery) => {
      onStatement(query.text);
      return client.query(query);
    },
    withTransaction: (work) => client.withTransaction((inner) => work(countedClient(inner, onStatement) as never)),
  };
}
