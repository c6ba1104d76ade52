import { GraphQLError, type GraphQLFormattedError } from "postgraphile/graphql";
import type { BodyLimit, BodyLimitOf } from "../../engine/caller/body-limit.ts";
import type { AuthenticationResult, Caller, Callers } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import type { CrossSite } from "../../engine/caller/cross-site.ts";
import { keepSession, readSessionCookie } from "../../engine/caller/session-cookie.ts";
import { isOutdated } from "../../engine/database/outdated.ts";
import { ApiError } from "../../engine/errors.ts";
import { methodNotAllowed, notFound } from "../../engine/wrong-address.ts";
import { type AnswerExtensions, answerExtensions } from "./answer-extensions.ts";
import { credentialsOf } from "./credentials.ts";
import { Refusal } from "./documents.ts";
import { asGraphQLError, type Explain } from "./errors.ts";
import type { HttpRequest, HttpResponse } from "./http.ts";
import { type MediaType, negotiate } from "./negotiate.ts";
import type { Operation, Outcome, Prepare, Result } from "./operation.ts";
import { checkContentType, parseBody, parseQueryString, type Sent } from "./parse-request.ts";
import type { FindDocument } from "./persisted-operations.ts";
import type { SchemaKeeper } from "./schema-keeper.ts";

type Services = {
  readonly path: string;
  readonly callers: () => Callers;
  readonly crossSite: CrossSite;
  readonly findDocument: FindDocument;
  readonly prepare: Prepare;
  readonly explain: Explain;
  readonly internalErrorStatus: number;
  readonly bodyLimitOf: BodyLimitOf;
  readonly schema: Pick<SchemaKeeper, "edition" | "isNewerThan">;
};

export type Handle = (request: HttpRequest) => Promise<HttpResponse>;

const METHODS = "GET, HEAD, OPTIONS, POST";
/** With so many a query is tried while the database changes. */
const MOST_SCHEMAS = 3;

/** GraphQL over HTTP. A request that cannot be read is refused by throwing; everything else is answered here. */
export function makeHandle(services: Services): Handle {
  const { path, callers, crossSite, findDocument, prepare, explain, internalErrorStatus, bodyLimitOf, schema } =
    services;
  const run = async (request: HttpRequest, sent: Sent, asker: AuthenticationResult): Promise<Result> => {
    const query = await findDocument(sent);
    const { id: requestId, method, headers, signal, tell } = request;
    const address = () => request.connection().address;
    const circumstances = { asker, requestId, method, path, headers, address, signal, tell, asText: true };
    for (let attempts = 1; ; attempts++) {
      const { edition } = schema;
      const operation = await prepare({ ...sent, query }, circumstances);
      admit(operation, method);
      request.stages.enter("run");
      request.whenSent(operation.release);
      const result = resultOf(await operation.run());
      const mayAgain = operation.kind === "query" && attempts < MOST_SCHEMAS && isOfOldSchema(result);
      if (!mayAgain || !(await schema.isNewerThan(edition))) return result;
      operation.release();
    }
  };

  const identify = async (request: HttpRequest): Promise<AuthenticationResult> => {
    const session = readSessionCookie(request.headers);
    const asker = await callers().identifyOrAnonymous({ ...credentialsOf(request), session });
    if (asker.caller.kind === "session") {
      crossSite.guard(request, session);
      request.tell(keepSession(session!));
    }
    return asker;
  };

  return async (request) => {
    if (request.path !== path) throw notFound();
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: METHODS }, body: null };

    const mediaType = negotiate(request.headers.accept);
    // How much they may send depends on who they are.
    request.stages.enter("caller");
    const asker = await identify(request);
    request.admit(asker.caller);
    request.stages.enter("parse");
    const sent = await readSent(request, asker.caller, bodyLimitOf(asker.caller));
    request.stages.enter("find");
    const result = await run(request, sent, asker).catch(asResult);

    request.stages.enter("send");
    const errors = result.errors?.map((error) => explain(error, { asker, requestId: request.id }));
    return {
      status: statusOf(result, errors, mediaType),
      headers: {
        "Content-Type": `${mediaType}; charset=utf-8`,
        "Cache-Control": "no-store",
        ...(hasCode(errors, "SERVICE_UNAVAILABLE") && { "Retry-After": "1" }),
      },
      body: toText(result.data, errors, answerExtensions(asker)),
    };
  };

  function statusOf({ data }: Result, errors: Errors, mediaType: MediaType): number {
    const isInternal = hasCode(errors, "INTERNAL_ERROR");
    if (isInternal && internalErrorStatus !== 200) return internalErrorStatus;
    // Clients that know no other type read errors of a 200 only.
    if (data !== undefined || mediaType === "application/json") return 200;
    return isInternal ? 500 : 400;
  }
}

/** Some of its statements name what is there no more. */
function isOfOldSchema({ errors }: Result): boolean {
  return errors?.some(({ originalError }) => isOutdated(originalError)) ?? false;
}

type Errors = readonly GraphQLFormattedError[] | undefined;

function hasCode(errors: Errors, code: string): boolean {
  return errors?.some(({ extensions }) => extensions?.code === code) ?? false;
}

async function readSent(request: HttpRequest, { claims }: Caller, bodyLimit: BodyLimit): Promise<Sent> {
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
      throw methodNotAllowed(request.method, METHODS);
  }
}

function admit({ kind }: Operation, method: string): void {
  if (kind === "subscription") throw new Refusal([SOCKETS_ONLY]);
  // An address that changes something when it is opened would be a trap.
  if (kind === "mutation" && method !== "POST") {
    throw new ApiError(405, "METHOD_NOT_ALLOWED", "Send mutations by POST.", { headers: { Allow: "POST" } });
  }
}

const SOCKETS_ONLY = new GraphQLError("Subscriptions are served over WebSocket, at this same address.", {
  extensions: { code: "VALIDATION_ERROR" },
});

function resultOf(outcome: Outcome): Result {
  if (outcome.kind === "stream") throw new TypeError("A stream of results cannot be one answer");
  return outcome.result;
}

function asResult(thrown: unknown): Result {
  if (thrown instanceof ApiError) throw thrown;
  return { errors: thrown instanceof Refusal ? thrown.errors : [asGraphQLError(thrown)] };
}

function toText(data: Result["data"], errors: Errors, extensions: AnswerExtensions | undefined): string {
  const parts: string[] = [];
  if (errors && errors.length > 0) parts.push(`"errors":${JSON.stringify(errors)}`);
  if (data !== undefined) parts.push(`"data":${typeof data === "string" ? data : JSON.stringify(data)}`);
  if (extensions) parts.push(`"extensions":${JSON.stringify(extensions)}`);
  return `{${parts.join(",")}}`;
}
