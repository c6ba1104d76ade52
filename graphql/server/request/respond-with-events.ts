import { GraphQLError } from "grafast/graphql";
import type { AuthenticationResult } from "#accounts/identity";
import { EVENT_STREAM_HEADERS, type EventSource, sendEvents, toEventText } from "#http";
import { formatLsn } from "#postgres/database";
import type { ExplainError } from "../../operations/errors.ts";
import type { LiveResults } from "../../operations/live-results.ts";
import type { OperationOutcome } from "../../operations/operation.ts";
import type { OperationResult } from "../../operations/run-compiled.ts";
import type { GraphqlHttpRequest, GraphqlHttpResponse } from "./http-messages.ts";
import { serializeResult } from "./respond.ts";

/** The last event of the distinct connections mode: https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md */
const COMPLETE = toEventText({ event: "complete", data: "" });

const EXPIRED = new GraphQLError("The token has expired, the session has ended, or the account has changed.", {
  extensions: { code: "AUTH_EXPIRED" },
});

type EventsRequest = {
  readonly request: Pick<GraphqlHttpRequest, "id" | "signal">;
  readonly authentication: AuthenticationResult;
  /** True if the credentials are still those of the caller. */
  readonly isValid: () => Promise<boolean>;
};

/** Outcome → a stream of events, which has one result unless the query is live. */
export function respondWithEvents(
  outcome: Extract<OperationOutcome, { kind: "result" | "live" }>,
  { request, authentication, isValid }: EventsRequest,
  explain: ExplainError,
): GraphqlHttpResponse {
  const toText = (result: OperationResult, id = {}) => {
    const data = String(serializeResult(result, { requestId: request.id, authentication }, explain));
    return toEventText({ ...id, event: "next", data });
  };
  const response = { status: 200, headers: EVENT_STREAM_HEADERS };
  if (outcome.kind === "result") return { ...response, body: `${toText(outcome.result)}${COMPLETE}` };
  const { results } = outcome;
  const close = () => void results.return();
  request.signal.addEventListener("abort", close);
  if (request.signal.aborted) close();
  const source = toEventSource(results, toText);
  return { ...response, body: sendEvents(source, { caller: authentication.caller, isValid }) };
}

function toEventSource(
  results: LiveResults,
  toText: (result: OperationResult, id?: { readonly id: string }) => string,
): EventSource {
  return {
    async next(milliseconds) {
      const result = await results.take(milliseconds);
      if (result === null || result === "idle") return result;
      if (result.errors) return `${toText(result)}${COMPLETE}`;
      return toText(result, { id: formatLsn(results.position) });
    },
    expired: `${toText({ errors: [EXPIRED] })}${COMPLETE}`,
    close: () => void results.return(),
  };
}
