import type { ErrorBodyShape } from "../../../http/error-bodies.ts";
import { type ComponentReference, componentRef, type JsonSchema, objectOf } from "../json-schema.ts";

const ERROR_DESCRIPTIONS = {
  400: "A parameter, the body or the version is invalid",
  401: "Credentials are missing or invalid",
  403: "The caller may not do this",
  404: "Not found",
  405: "The method is not allowed",
  406: "No accepted media type is available",
  409: "A conflict: the value is taken, or other rows refer to the row",
  410: "This version is retired",
  412: "The row has changed since it was read; nothing was written",
  413: "The body is too large",
  415: "The body is not JSON",
  422: "A constraint of the data is violated",
  429: "Too many requests",
  500: "An internal error",
  501: "Not configured in this deployment",
  502: "The identity provider is unreachable or its response is invalid",
  503: "The database is unavailable",
  504: "The database statement timed out",
};

export type ResourceErrorStatus = keyof typeof ERROR_DESCRIPTIONS;

/** Errors that every operation can have. */
const COMMON_STATUSES: readonly ResourceErrorStatus[] = [400, 401, 406, 410, 429, 500, 503, 504];

const RETRY_AFTER = { "Retry-After": { description: "Seconds to wait", schema: { type: "integer" } } };
const ERROR_HEADERS: { readonly [Status in ResourceErrorStatus]?: object } = {
  401: { "WWW-Authenticate": { description: "The accepted authentication schemes", schema: { type: "string" } } },
  405: { Allow: { description: "The allowed methods", schema: { type: "string" } } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

export function* resourceErrorResponses(): Generator<[string, object]> {
  const content = { "application/json": { schema: componentRef("schemas", "error") } };
  for (const [status, description] of Object.entries(ERROR_DESCRIPTIONS)) {
    const headers = ERROR_HEADERS[Number(status) as ResourceErrorStatus];
    yield [`error.${status}`, { description, ...(headers && { headers }), content }];
  }
}

/** References to the responses of these errors and of those that every operation can have. */
export function resourceErrorRefs(
  ...statuses: readonly ResourceErrorStatus[]
): Readonly<Record<string, ComponentReference>> {
  const all = [...new Set([...statuses, ...COMMON_STATUSES])].sort();
  return Object.fromEntries(all.map((status) => [status, componentRef("responses", `error.${status}`)]));
}

const CODE: JsonSchema = { type: "string", examples: ["VALIDATION_ERROR"] };
const TEXT: JsonSchema = { type: "string" };
const FAULTS: JsonSchema = {
  type: "array",
  items: { type: "object", properties: { field: TEXT, message: TEXT }, required: ["field", "message"] },
};
const EXTRA_FIELDS = { errors: FAULTS, supportedVersions: { type: "array", items: { type: "integer" } } };

/** The schema of an error body, by the setting ERROR_BODY. */
export function errorSchema(variant: ErrorBodyShape): JsonSchema {
  const codeAndMessage = { code: CODE, message: TEXT };
  switch (variant) {
    case "detail":
      return objectOf({ detail: objectOf(codeAndMessage) }, EXTRA_FIELDS);
    case "flat":
      return objectOf({ error: CODE, message: TEXT, field: { type: ["string", "null"] } }, EXTRA_FIELDS);
    case "spring":
      return objectOf(
        {
          timestamp: { type: "string", format: "date-time" },
          status: { type: "integer" },
          error: objectOf({ ...codeAndMessage, fields: { type: "object", additionalProperties: TEXT } }),
        },
        EXTRA_FIELDS,
      );
    case "nested":
      return objectOf(
        {
          error: objectOf({
            ...codeAndMessage,
            details: FAULTS,
            requestId: TEXT,
            timestamp: { type: "string", format: "date-time" },
            documentation: TEXT,
          }),
        },
        EXTRA_FIELDS,
      );
  }
}

/** An operation of the document. */
export type PathOperation = { readonly [key: string]: unknown };
export type PathItem = { readonly [method: string]: PathOperation | undefined };

/** Drops methods without an operation. */
export function withoutAbsent(item: PathItem): PathItem {
  return Object.fromEntries(Object.entries(item).filter(([, operation]) => operation !== undefined));
}
