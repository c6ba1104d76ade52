import { GraphQLError } from "grafast/graphql";
import type { AuthenticationResult, Authenticator } from "#accounts/identity";
import { acceptsEventStream, type CsrfProtection, type FindBodyLimit, HttpError, notFound } from "#http";
import { isSchemaOutdated } from "#postgres/database";
import { GraphqlRefusal } from "../../documents/graphql-refusal.ts";
import type { ExplainError } from "../../operations/errors.ts";
import type {
  OperationOutcome,
  OperationRequestInfo,
  OperationStages,
  PlannedOperation,
} from "../../operations/operation.ts";
import type { SchemaKeeper } from "../../schemas/schema-keeper.ts";
import { authenticate, isRevoked } from "./authenticate.ts";
import type { GraphqlHttpRequest, GraphqlHttpResponse } from "./http-messages.ts";
import { GRAPHQL_METHODS, parse } from "./parse.ts";
import type { FindDocument } from "./persisted-operations.ts";
import { negotiateMediaType, respond, toErrorResult } from "./respond.ts";
import { respondWithEvents } from "./respond-with-events.ts";

type GraphqlHandlerDependencies = {
  readonly path: string;
  readonly authenticator: () => Authenticator;
  readonly csrf: CsrfProtection;
  readonly findDocument: FindDocument;
  readonly stages: OperationStages;
  readonly explain: ExplainError;
  readonly internalErrorStatus: number;
  readonly bodyLimitOf: FindBodyLimit;
  readonly schema: Pick<SchemaKeeper, "version" | "isNewerThan">;
};

type HandleGraphql = (request: GraphqlHttpRequest) => Promise<GraphqlHttpResponse>;

/** How often a query is run while the database changes, each time with a newer schema. */
const MAX_SCHEMA_ATTEMPTS = 10;

/**
 * GraphQL over HTTP: authenticate → parse → plan → query → run → respond. Throws for requests that cannot be parsed; all other errors
 * are in the response.
 */
export function makeGraphqlHandler(dependencies: GraphqlHandlerDependencies): HandleGraphql {
  const { path, stages, findDocument, schema, bodyLimitOf } = dependencies;
  return async (request) => {
    if (request.path !== path) throw notFound();
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: GRAPHQL_METHODS }, body: null };
    const takesEvents = acceptsEventStream(request.headers);
    const mediaType = negotiateMediaType(request.headers.accept, takesEvents);
    request.stages.enter("authenticate");
    const authentication = await authenticate(request, dependencies);
    request.stages.enter("parse");
    // The body limit depends on the caller.
    const parsed = await parse(request, authentication.caller, bodyLimitOf(authentication.caller));
    const outcome = await retryWithNewerSchema(schema, async () => {
      request.stages.enter("plan");
      const query = await findDocument(parsed);
      const planned = await stages.plan({ ...parsed, query }, requestInfoOf(request, authentication));
      request.stages.enter("query");
      const bound = await stages.query(planned);
      checkMethod(planned, request.method, takesEvents);
      request.stages.enter("run");
      request.whenSent(() => planned.memory.release());
      return { planned, outcome: await stages.run(planned, bound) };
    }).catch((error): OperationOutcome => ({ kind: "result", result: toErrorResult(error) }));
    request.stages.enter("respond");
    if (outcome.kind === "stream") throw new TypeError("Events of rows are sent over WebSocket");
    if (outcome.kind === "result" && mediaType !== null)
      return respond(outcome.result, { request, authentication, mediaType }, dependencies);
    const isValid = () => isStillValid(authentication, dependencies);
    return respondWithEvents(outcome, { request, authentication, isValid }, dependencies.explain);
  };
}

type Attempt = { readonly planned: PlannedOperation; readonly outcome: OperationOutcome };

/** Runs a query again if its statements name objects that no longer exist. */
async function retryWithNewerSchema(
  schema: GraphqlHandlerDependencies["schema"],
  runOnce: () => Promise<Attempt>,
): Promise<OperationOutcome> {
  for (let attempts = 1; ; attempts++) {
    const { version } = schema;
    const { planned, outcome } = await runOnce();
    const mayRetry = planned.kind === "query" && attempts < MAX_SCHEMA_ATTEMPTS && usesOutdatedSchema(outcome);
    if (!mayRetry || !(await schema.isNewerThan(version))) return outcome;
    planned.memory.release();
  }
}

/** True if a statement failed because it names an object that no longer exists. */
function usesOutdatedSchema(outcome: OperationOutcome): boolean {
  const errors = outcome.kind === "result" ? outcome.result.errors : undefined;
  return errors?.some(({ originalError }) => isSchemaOutdated(originalError)) ?? false;
}

/** True if the credentials are still valid. If the database cannot be asked, the stream stays open. */
async function isStillValid(
  { caller }: AuthenticationResult,
  { authenticator }: GraphqlHandlerDependencies,
): Promise<boolean> {
  return !(await isRevoked(authenticator(), caller).catch(() => false));
}

function requestInfoOf(
  { id, method, path, headers, signal, addResponseHeaders, connection }: GraphqlHttpRequest,
  authentication: AuthenticationResult,
): OperationRequestInfo {
  return {
    authentication,
    requestId: id,
    method,
    path,
    headers,
    address: () => connection().address,
    signal,
    addResponseHeaders,
  };
}

function checkMethod({ kind, live }: PlannedOperation, method: string, takesEvents: boolean): void {
  if (kind === "subscription" && !(live && takesEvents)) throw new GraphqlRefusal([SUBSCRIPTION_OVER_HTTP]);
  // A link must not change data.
  if (kind === "mutation" && method !== "POST") {
    throw new HttpError(405, "METHOD_NOT_ALLOWED", "Send mutations by POST.", { headers: { Allow: "POST" } });
  }
}

const SUBSCRIPTION_OVER_HTTP = new GraphQLError(
  "Subscriptions need a WebSocket connection to this path; those to live, or text/event-stream.",
  {
    extensions: { code: "VALIDATION_ERROR" },
  },
);
