export { bodyTooLarge } from "./body-errors.ts";
export { type FindBodyLimit, makeBodyLimits } from "./body-limit.ts";
export { withNoStore, withoutCaching } from "./cache-headers.ts";
export {
  CREDENTIAL_HEADERS,
  CREDENTIAL_VARY,
  clearSessionCookie,
  queryWithoutApiKey,
  readApiKey,
  readApiKeyParameter,
  readSessionCookie,
  setSessionCookie,
} from "./credentials.ts";
export { CSRF_TOKEN_HEADER, type CsrfProtection, csrfTokenOf, makeCsrfProtection } from "./csrf-protection.ts";
export {
  type ErrorBodyShape,
  type ErrorVerbosity,
  remarksOf,
  toChannelReason,
  toTableBody,
} from "./error-bodies.ts";
export { type ErrorPageRequest, type NegotiateErrorPage, toErrorResponse } from "./errors.ts";
export {
  acceptsEventStream,
  EVENT_STREAM,
  EVENT_STREAM_HEADERS,
  type EventSource,
  sendEvents,
  toEventText,
} from "./event-stream.ts";
export {
  errorCodeOf,
  errorHeaders,
  HttpError,
  methodNotAllowed,
  notFound,
  toHttpError,
  tooManyRequests,
  withBearerChallenge,
  withMembers,
} from "./http-error.ts";
export { digestOf, isMet, matchesTag, type Precondition, parsePreconditions } from "./preconditions.ts";
export { makeReadYourWrites } from "./read-your-writes.ts";
export {
  type BodyLimit,
  clientDisconnected,
  clientInfoOf,
  decodeSchemaName,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayRoutes,
  isPathUnder,
  isReadMethod,
  type LimitExpensiveRequest,
  NO_STAGES,
  prefersHtml,
  profileHeader,
  publicBasePath,
  publicBaseUrl,
  readMediaRanges,
  TABLE_PREFIX,
  type UpgradeListener,
} from "./request.ts";
export { concatenate } from "./request-body.ts";
export {
  type BodyStream,
  type GatewayResponse,
  isBodyStream,
  jsonResponse,
  mergeVary,
  type ResponseBody,
} from "./response.ts";
export { securityHeaders } from "./response-headers.ts";
export {
  dispatchMethod,
  type MatchedRequest,
  type MatchedRequestHandler,
  makeRouteFinder,
  type PatternRoutes,
} from "./route-patterns.ts";
export { statusOf } from "./sqlstates.ts";
export {
  type CompressedContent,
  compressContent,
  compressedResponse,
  compressResponse,
  contentResponse,
  type TaggedContent,
  tagContent,
} from "./tagged-content.ts";
