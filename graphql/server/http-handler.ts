import type { IncomingHttpHeaders } from "node:http";
import { GraphQLError, type GraphQLFormattedError } from "grafast/graphql";
import { type AuthenticationResult, type Authenticator, type Caller, callerKey } from "#accounts/identity";
import {
  type BodyLimit,
  type CsrfProtection,
  type FindBodyLimit,
  HttpError,
  methodNotAllowed,
  notFound,
  readSessionCookie,
  setSessionCookie,
} from "#http";
import { isSchemaOutdated } from "#postgres/database";
import { ApiError } from "#runtime";
import type { AbortLike } from "#runtime/concurrency";
import { GraphqlRefusal } from "./documents.ts";
import { type ExplainError, type ResponseExtensions, responseExtensions, toGraphQLError } from "./errors.ts";
import type { OperationOutcome, OperationRequestInfo, PreparedOperation, PrepareOperation } from "./operation.ts";
import {
  checkContentType,
  type GraphqlRequest,
  parseBody,
  parseQueryString,
  readCredentials,
} from "./parse-request.ts";
import type { FindDocument } from "./persisted-operations.ts";
import type { OperationResult } from "./run-compiled.ts";
import type { SchemaKeeper } from "./schema-keeper.ts";

const JSON_MEDIA_TYPE: ResponseMediaType = "application/json";
const GRAPHQL_MEDIA_TYPE: ResponseMediaType = "application/graphql-response+json";

/** The type for each range; wildcards get application/json. */
const MEDIA_TYPES_BY_RANGE: ReadonlyMap<string, ResponseMediaType> = new Map([
  [GRAPHQL_MEDIA_TYPE, GRAPHQL_MEDIA_TYPE],
  [JSON_MEDIA_TYPE, JSON_MEDIA_TYPE],
  ["application/*", JSON_MEDIA_TYPE],
  ["*/*", JSON_MEDIA_TYPE],
]);

type GraphqlHandlerDependencies = {
  readonly path: string;
  readonly authenticator: () => Authenticator;
  readonly csrf: CsrfProtection;
  readonly findDocument: FindDocument;
  readonly prepare: PrepareOperation;
  readonly explain: ExplainError;
  readonly internalErrorStatus: number;
  readonly bodyLimitOf: FindBodyLimit;
  readonly schema: Pick<SchemaKeeper, "version" | "isNewerThan">;
};

type HandleGraphql = (request: GraphqlHttpRequest) => Promise<GraphqlHttpResponse>;

const GRAPHQL_METHODS = "GET, HEAD, OPTIONS, POST";
/** How often a query is run while the database changes, each time with a newer schema. */
const MAX_SCHEMA_ATTEMPTS = 10;

/** GraphQL over HTTP. Throws for requests that cannot be parsed; all other errors are in the response. */
export function makeGraphqlHandler(dependencies: GraphqlHandlerDependencies): HandleGraphql {
  const { path, bodyLimitOf, explain, internalErrorStatus } = dependencies;
  return async (request) => {
    if (request.path !== path) throw notFound();
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: GRAPHQL_METHODS }, body: null };

    const mediaType = negotiateMediaType(request.headers.accept);
    // The body limit depends on the caller.
    request.stages.enter("authenticate");
    const authentication = await authenticate(request, dependencies);
    request.admit(authentication.caller);
    request.stages.enter("parse");
    const graphqlRequest = await readGraphqlRequest(request, authentication.caller, bodyLimitOf(authentication.caller));
    request.stages.enter("plan");
    const result = await runOperation(request, graphqlRequest, authentication, dependencies).catch(toErrorResult);

    request.stages.enter("respond");
    const errors = result.errors?.map((error) => explain(error, { authentication, requestId: request.id }));
    return {
      status: statusOf(result, errors, mediaType, internalErrorStatus),
      headers: {
        "Content-Type": `${mediaType}; charset=utf-8`,
        "Cache-Control": "no-store",
        ...(hasCode(errors, "SERVICE_UNAVAILABLE") && { "Retry-After": "1" }),
      },
      body: serializeResponse(result.data, errors, responseExtensions(authentication)),
    };
  };
}

async function authenticate(
  request: GraphqlHttpRequest,
  { authenticator, csrf }: GraphqlHandlerDependencies,
): Promise<AuthenticationResult> {
  const session = readSessionCookie(request.headers);
  const authentication = await authenticator().authenticateOrAnonymous({ ...readCredentials(request), session });
  if (authentication.caller.kind === "session") {
    csrf.checkRequest(request, session);
    request.addResponseHeaders(setSessionCookie(session!));
  }
  return authentication;
}

async function runOperation(
  request: GraphqlHttpRequest,
  graphqlRequest: GraphqlRequest,
  authentication: AuthenticationResult,
  { path, findDocument, prepare, schema }: GraphqlHandlerDependencies,
): Promise<OperationResult> {
  const query = await findDocument(graphqlRequest);
  const { id: requestId, method, headers, signal, addResponseHeaders } = request;
  const address = () => request.connection().address;
  const requestInfo: OperationRequestInfo = {
    authentication,
    requestId,
    method,
    path,
    headers,
    address,
    signal,
    addResponseHeaders,
    asText: true,
  };
  for (let attempts = 1; ; attempts++) {
    const { version } = schema;
    const operation = await prepare({ ...graphqlRequest, query }, requestInfo);
    checkOperationMethod(operation, method);
    request.stages.enter("run");
    request.whenSent(operation.release);
    const result = resultOf(await operation.run());
    const mayRetry = operation.kind === "query" && attempts < MAX_SCHEMA_ATTEMPTS && usesOutdatedSchema(result);
    if (!mayRetry || !(await schema.isNewerThan(version))) return result;
    operation.release();
  }
}

function statusOf(
  { data }: OperationResult,
  errors: FormattedErrors,
  mediaType: ResponseMediaType,
  internalErrorStatus: number,
): number {
  const isInternal = hasCode(errors, "INTERNAL_ERROR");
  if (isInternal && internalErrorStatus !== 200) return internalErrorStatus;
  // Clients that accept only application/json expect errors with status 200.
  if (data !== undefined || mediaType === "application/json") return 200;
  return isInternal ? 500 : 400;
}

/** Whether a statement failed because it names an object that no longer exists. */
function usesOutdatedSchema({ errors }: OperationResult): boolean {
  return errors?.some(({ originalError }) => isSchemaOutdated(originalError)) ?? false;
}

type FormattedErrors = readonly GraphQLFormattedError[] | undefined;

function hasCode(errors: FormattedErrors, code: string): boolean {
  return errors?.some(({ extensions }) => extensions?.code === code) ?? false;
}

async function readGraphqlRequest(
  request: GraphqlHttpRequest,
  { claims }: Caller,
  bodyLimit: BodyLimit,
): Promise<GraphqlRequest> {
  switch (request.method) {
    case "GET":
    case "HEAD":
      return parseQueryString(request.rawQuery);
    case "POST":
      checkContentType(request.headers["content-type"]);
      return parseBody(await request.readBody(bodyLimit), {
        owner: () => callerKey(claims, () => request.connection().address),
        signal: request.signal,
      });
    default:
      throw methodNotAllowed(request.method, GRAPHQL_METHODS);
  }
}

function checkOperationMethod({ kind }: PreparedOperation, method: string): void {
  if (kind === "subscription") throw new GraphqlRefusal([SUBSCRIPTION_OVER_HTTP]);
  // A link must not change data.
  if (kind === "mutation" && method !== "POST") {
    throw new HttpError(405, "METHOD_NOT_ALLOWED", "Send mutations by POST.", { headers: { Allow: "POST" } });
  }
}

const SUBSCRIPTION_OVER_HTTP = new GraphQLError("Subscriptions need a WebSocket connection to this path.", {
  extensions: { code: "VALIDATION_ERROR" },
});

function resultOf(outcome: OperationOutcome): OperationResult {
  if (outcome.kind === "stream") throw new TypeError("A stream of results cannot be one answer");
  return outcome.result;
}

function toErrorResult(thrown: unknown): OperationResult {
  if (thrown instanceof ApiError) throw thrown;
  return { errors: thrown instanceof GraphqlRefusal ? thrown.errors : [toGraphQLError(thrown)] };
}

function serializeResponse(
  data: OperationResult["data"],
  errors: FormattedErrors,
  extensions: ResponseExtensions | undefined,
): string | Buffer {
  if (Buffer.isBuffer(data)) {
    const rest = extensions ? `,"extensions":${JSON.stringify(extensions)}` : "";
    return Buffer.concat([Buffer.from(`{"data":`), data, Buffer.from(`${rest}}`)]);
  }
  const parts: string[] = [];
  if (errors && errors.length > 0) parts.push(`"errors":${JSON.stringify(errors)}`);
  if (data !== undefined) parts.push(`"data":${typeof data === "string" ? data : JSON.stringify(data)}`);
  if (extensions) parts.push(`"extensions":${JSON.stringify(extensions)}`);
  return `{${parts.join(",")}}`;
}

type ResponseMediaType = "application/json" | "application/graphql-response+json";

/** GraphQL over HTTP, section 6.2. At equal quality, application/graphql-response+json is preferred. */
function negotiateMediaType(accept: string | undefined): ResponseMediaType {
  if (accept === undefined || accept === JSON_MEDIA_TYPE || accept === "*/*" || accept.trim() === "")
    return JSON_MEDIA_TYPE;
  const ranges = accept.split(",").map(parseAcceptRange);
  const best = ranges.filter(({ type, quality }) => type && quality > 0).sort(byPreference)[0];
  if (best?.type) return best.type;
  throw new HttpError(406, "NOT_ACCEPTABLE", `Accept must allow ${GRAPHQL_MEDIA_TYPE} or ${JSON_MEDIA_TYPE}.`);
}

type AcceptRange = { readonly type: ResponseMediaType | undefined; readonly quality: number };

/** `application/json;charset=utf-8;q=0.9` */
function parseAcceptRange(text: string): AcceptRange {
  const [name = "", ...parameters] = text.toLowerCase().replaceAll(/\s/g, "").split(";");
  const weight = parameters.find((parameter) => parameter.startsWith("q="));
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  const isReadable = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  return {
    type: isReadable ? MEDIA_TYPES_BY_RANGE.get(name) : undefined,
    quality: weight ? Number(weight.slice(2)) : 1,
  };
}

function byPreference(left: AcceptRange, right: AcceptRange): number {
  return (
    right.quality - left.quality || Number(right.type === GRAPHQL_MEDIA_TYPE) - Number(left.type === GRAPHQL_MEDIA_TYPE)
  );
}

/** The request as the gateway passes it on. */
export type GraphqlHttpRequest = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  readonly stages: { enter(name: string): void };
  readonly signal: AbortLike;
  /** The client's connection. */
  connection(): { readonly address: string | null };
  /** Throws when the caller exceeds its rate limit. */
  admit(caller: Caller): void;
  /** Sets headers of the response. */
  addResponseHeaders(headers: Readonly<Record<string, string>>): void;
  readBody(limit: BodyLimit): Promise<Buffer>;
  /** Calls back when the response is sent or the client has disconnected. */
  whenSent(callback: () => void): void;
};

export type GraphqlHttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
};
