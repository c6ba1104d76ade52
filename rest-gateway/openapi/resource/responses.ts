import type { ErrorBodyShape } from "../../../engine/errors.ts";
import { type ComponentReference, componentRef, type JsonSchema, objectOf } from "../json-schema.ts";

const ERROR_DESCRIPTIONS = {
  400: "A parameter or the body is not as it should be; or there is no such version",
  401: "The credentials are no good, or there are none and there have to be",
  403: "Whoever asks may not do this",
  404: "There is nothing of that name, or no such row",
  405: "The address does not take this method",
  406: "The answer cannot have a media type that is accepted",
  409: "It is in conflict with what is there: a value is taken, or others refer to the row",
  410: "This version is no longer served",
  412: "The row is no longer what the caller knows; nothing was changed",
  413: "The body is too large",
  415: "The body is not JSON",
  422: "It can be read, but breaks a rule of the data",
  429: "There were too many requests",
  500: "The service or the database has a fault",
  501: "The deployment is not set up for this",
  502: "A provider of identities cannot be reached, or answers oddly",
  503: "The database does not answer",
  504: "The database took too long",
};

export type ResourceErrorStatus = keyof typeof ERROR_DESCRIPTIONS;

/** What any request may be told. */
const COMMON_STATUSES: readonly ResourceErrorStatus[] = [400, 401, 406, 410, 429, 500, 503, 504];

const RETRY_AFTER = { "Retry-After": { description: "Seconds to wait", schema: { type: "integer" } } };
const ERROR_HEADERS: { readonly [Status in ResourceErrorStatus]?: object } = {
  401: { "WWW-Authenticate": { description: "What would be taken", schema: { type: "string" } } },
  405: { Allow: { description: "The methods that it takes", schema: { type: "string" } } },
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

/** These, and what may always happen. */
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

/** The body of every refusal, in the variant that the deployment has chosen. */
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

/** An operation as the document has it. */
export type PathOperation = { readonly [key: string]: unknown };
export type PathItem = { readonly [method: string]: PathOperation | undefined };

/** Entries without what is absent. */
export function withoutAbsent(item: PathItem): PathItem {
  return Object.fromEntries(Object.entries(item).filter(([, operation]) => operation !== undefined));
}
