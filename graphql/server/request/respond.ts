import type { GraphQLFormattedError } from "grafast/graphql";
import type { AuthenticationResult } from "#accounts/identity";
import { EVENT_STREAM, HttpError } from "#http";
import { ApiError } from "#runtime";
import { type ExplainError, errorsOf, type ResponseExtensions, responseExtensions } from "../../operations/errors.ts";
import type { OperationResult } from "../../operations/run-compiled.ts";
import type { GraphqlHttpResponse } from "./http-messages.ts";

const JSON_MEDIA_TYPE: ResponseMediaType = "application/json";
const GRAPHQL_MEDIA_TYPE: ResponseMediaType = "application/graphql-response+json";

/** The type for each range; wildcards get application/json. */
const MEDIA_TYPES_BY_RANGE: ReadonlyMap<string, ResponseMediaType> = new Map([
  [GRAPHQL_MEDIA_TYPE, GRAPHQL_MEDIA_TYPE],
  [JSON_MEDIA_TYPE, JSON_MEDIA_TYPE],
  ["application/*", JSON_MEDIA_TYPE],
  ["*/*", JSON_MEDIA_TYPE],
]);

type ResponseRequest = {
  readonly request: { readonly id: string };
  readonly authentication: AuthenticationResult;
  readonly mediaType: ResponseMediaType;
};

type RespondOptions = { readonly explain: ExplainError; readonly internalErrorStatus: number };

/** Result → status, headers, body. */
export function respond(
  result: OperationResult,
  { request, authentication, mediaType }: ResponseRequest,
  { explain, internalErrorStatus }: RespondOptions,
): GraphqlHttpResponse {
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
}

/** The body of a response with this result. */
export function serializeResult(
  { data, errors, extensions }: OperationResult,
  audience: Parameters<ExplainError>[1],
  explain: ExplainError,
): string | Buffer {
  const explained = errors?.map((error) => explain(error, audience));
  return serializeResponse(data, explained, responseExtensions(audience.authentication, extensions));
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

type FormattedErrors = readonly GraphQLFormattedError[] | undefined;

function hasCode(errors: FormattedErrors, code: string): boolean {
  return errors?.some(({ extensions }) => extensions?.code === code) ?? false;
}

export function toErrorResult(thrown: unknown): OperationResult {
  if (thrown instanceof ApiError) throw thrown;
  return { errors: errorsOf(thrown) };
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

export type ResponseMediaType = "application/json" | "application/graphql-response+json";

/**
 * GraphQL over HTTP, section 6.2. At equal quality, application/graphql-response+json is preferred. Null for a client that takes
 * event streams only.
 */
export function negotiateMediaType(accept: string | undefined, takesEvents: boolean): ResponseMediaType | null {
  if (accept === undefined || accept === JSON_MEDIA_TYPE || accept === "*/*" || accept.trim() === "")
    return JSON_MEDIA_TYPE;
  const ranges = accept.split(",").map(parseAcceptRange);
  const best = ranges.filter(({ type, quality }) => type && quality > 0).sort(byPreference)[0];
  if (best?.type) return best.type;
  if (takesEvents) return null;
  throw new HttpError(
    406,
    "NOT_ACCEPTABLE",
    `Accept must allow ${GRAPHQL_MEDIA_TYPE}, ${JSON_MEDIA_TYPE} or ${EVENT_STREAM}.`,
  );
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
