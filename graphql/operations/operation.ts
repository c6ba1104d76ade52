import type { IncomingHttpHeaders } from "node:http";
import type { ExecutionArgs, GraphQLError, OperationDefinitionNode, OperationTypeNode } from "grafast/graphql";
import type { LimitCreatedUsers } from "#accounts";
import type { AuthenticationResult } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { KeyedCounter, RequestRecorder, Tracing } from "#http/observability";
import type { LiveQueries } from "#live";
import type { Database } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import type { AbortLike } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { BoundOperation } from "../compile/operation-plans.ts";
import type { EventKeys } from "../compile/operation-values.ts";
import type { CheckedDocument } from "../documents/documents.ts";
import type { OperationVariables } from "../documents/exact-numbers.ts";
import type { IntrospectionAccess } from "../documents/introspection-access.ts";
import type { LiveDocument } from "../documents/live-document.ts";
import type { ServedSchema } from "../schemas/role-schemas.ts";
import type { RowEventHub } from "./events.ts";
import type { LiveResults } from "./live-results.ts";
import type { OperationMemory } from "./operation-memory.ts";
import type { MakeWriteRows } from "./rows-writer.ts";
import type { CompiledRunOptions, OperationResult } from "./run-compiled.ts";
import type { SubscriptionResults } from "./subscription-delivery.ts";

/** The parameters of a GraphQL request, over HTTP or WebSocket. */
export type OperationParameters = {
  readonly query: string;
  readonly operationName: string | null;
  readonly variables: OperationVariables;
  /** The variables with ExactNumbers. */
  readonly parseExactVariables: () => OperationVariables;
  readonly extensions: Readonly<Record<string, unknown>>;
};

/** The caller and the request that an operation came with. */
export type OperationRequestInfo = {
  readonly authentication: AuthenticationResult;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The client's address; null when unknown. */
  readonly address: () => string | null;
  /** Aborted when the client has disconnected. */
  readonly signal?: AbortLike;
  /** Sets headers of the response, if it has any. */
  readonly addResponseHeaders?: (headers: Readonly<Record<string, string>>) => void;
};

export type OperationOutcome =
  | { readonly kind: "result"; readonly result: OperationResult }
  | { readonly kind: "stream"; readonly results: SubscriptionResults }
  | { readonly kind: "live"; readonly results: LiveResults };

/** A checked operation that is ready to run. */
export type PreparedOperation = ExecutionArgs & {
  readonly kind: `${OperationTypeNode}`;
  /** The approximate memory of its document, which other operations may share. */
  readonly documentBytes: number;
  run(): Promise<OperationOutcome>;
  /** Call when the response has been sent, or will not be. */
  release(): void;
};

/** The query of a live query, and the request that it came with. */
export type LiveOperation = { readonly document: LiveDocument; readonly parameters: OperationParameters };

/** An operation between its stages: its document is checked, and its limits and the way it runs are known. */
export type PlannedOperation = {
  readonly kind: PreparedOperation["kind"];
  readonly served: ServedSchema;
  readonly args: Pick<ExecutionArgs, "schema" | "document" | "variableValues" | "operationName">;
  readonly checked: CheckedDocument;
  readonly selected: OperationDefinitionNode;
  /** True if either all fields of the mutation are committed or none. */
  readonly isOneTransaction: boolean;
  readonly memory: OperationMemory;
  readonly requestInfo: OperationRequestInfo;
  readonly context: StatementContext;
  readonly isLong: boolean;
  readonly countSignUp: CompiledRunOptions["countSignUp"];
  /** The keys of the row of an event; null for what is no subscription, and before an event. */
  readonly event: EventKeys | null;
  /** Null: it is not a live query. */
  readonly live: LiveOperation | null;
  /** Why its fields may not run by themselves; null if they may. */
  readonly runFieldsRefusal: GraphQLError | null;
};

/** The stages of an operation after parse. Plan and query are synchronous, unless a schema must be built first or the document is large. */
export type OperationStages = {
  /** Throws a GraphqlRefusal for an operation that the client must correct. */
  plan(parameters: OperationParameters, requestInfo: OperationRequestInfo): Awaitable<PlannedOperation>;
  /** The statements with the values of this request; null when its fields run by themselves. */
  query(planned: PlannedOperation): Awaitable<BoundOperation | null>;
  run(planned: PlannedOperation, bound: BoundOperation | null): Promise<OperationOutcome>;
};

type Awaitable<T> = T | Promise<T>;

/** Replaces the stages, for tests that compare them with those of another executor. */
export type ReplaceStages = (stages: OperationStages, dependencies: OperationDependencies) => OperationStages;

export type OperationDependencies = {
  readonly schemaOf: (role: string) => ServedSchema | Promise<ServedSchema>;
  /** The schema that is being built, which serves operations that the current one refuses. */
  readonly upcomingSchemaOf: (role: string) => ServedSchema | null;
  /** Resolves when there is such a schema, or after a while. Null if none is expected. */
  readonly whenUpcoming: () => Promise<void> | null;
  /** Resolves when the schema is served, or after a while. */
  readonly whenBuilt: () => Promise<void>;
  readonly introspection: IntrospectionAccess;
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly live: LiveQueries;
  readonly events: RowEventHub;
  readonly makeWriteRows: MakeWriteRows;
  readonly contextOf: (requestInfo: OperationRequestInfo, kind: PreparedOperation["kind"]) => StatementContext;
  /** How many bytes are held at most: of one operation's rows, of all rows, and of all responses. */
  readonly byteLimits: { readonly operation: number; readonly together: number; readonly answers: number };
  readonly anonymous: AnonymousLimits;
  /** Counts the users that callers create. Null: no limit. */
  readonly limitCreatedUsers: LimitCreatedUsers | null;
  /** Null when tracing is off. */
  readonly tracing?: Tracing | null;
  readonly compilation: CompilationOptions;
  readonly recorder: RequestRecorder;
};

export type CompilationOptions = {
  /** Counts operations that were compiled, and the others by the reason. */
  readonly outcomes: KeyedCounter;
  readonly log: Pick<Logger, "debug">;
};

/** Limits for operations in the anonymous role. */
export type AnonymousLimits = {
  readonly role: string;
  readonly maxBranches: number;
  readonly maxResponseBytes: number;
};
