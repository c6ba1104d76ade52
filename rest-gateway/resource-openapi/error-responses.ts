import type { ErrorBody } from "../../engine/errors.ts";
import { type Reference, referTo } from "../openapi/table-document/component-key.ts";
import type { Schema } from "../openapi/table-document/type-schema.ts";
import { object } from "./object-schema.ts";

const ERRORS = {
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

export type ErrorStatus = keyof typeof ERRORS;

/** What any request may be told. */
const ALWAYS: readonly ErrorStatus[] = [400, 401, 406, 410, 429, 500, 503, 504];

const RETRY_AFTER = { "Retry-After": { description: "Seconds to wait", schema: { type: "integer" } } };
const HEADERS: { readonly [Status in ErrorStatus]?: object } = {
  401: { "WWW-Authenticate": { description: "What would be taken", schema: { type: "string" } } },
  405: { Allow: { description: "The methods that it takes", schema: { type: "string" } } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

export function* errorResponses(): Generator<[string, object]> {
  const content = { "application/json": { schema: referTo("schemas", "error") } };
  for (const [status, description] of Object.entries(ERRORS)) {
    const headers = HEADERS[Number(status) as ErrorStatus];
    yield [`error.${status}`, { description, ...(headers && { headers }), content }];
  }
}

/** These, and what may always happen. */
export function refuses(...statuses: readonly ErrorStatus[]): Readonly<Record<string, Reference>> {
  const all = [...new Set([...statuses, ...ALWAYS])].sort();
  return Object.fromEntries(all.map((status) => [status, referTo("responses", `error.${status}`)]));
}

const CODE: Schema = { type: "string", examples: ["VALIDATION_ERROR"] };
const TEXT: Schema = { type: "string" };
const FAULTS: Schema = {
  type: "array",
  items: { type: "object", properties: { field: TEXT, message: TEXT }, required: ["field", "message"] },
};
const BESIDE = { errors: FAULTS, supportedVersions: { type: "array", items: { type: "integer" } } };

/** The body of every refusal, in the variant that the deployment has chosen. */
export function errorSchema(variant: ErrorBody): Schema {
  const said = { code: CODE, message: TEXT };
  switch (variant) {
    case "detail":
      return object({ detail: object(said) }, BESIDE);
    case "flat":
      return object({ error: CODE, message: TEXT, field: { type: ["string", "null"] } }, BESIDE);
    case "spring":
      return object(
        {
          timestamp: { type: "string", format: "date-time" },
          status: { type: "integer" },
          error: object({ ...said, fields: { type: "object", additionalProperties: TEXT } }),
        },
        BESIDE,
      );
    case "nested":
      return object(
        {
          error: object({
            ...said,
            details: FAULTS,
            requestId: TEXT,
            timestamp: { type: "string", format: "date-time" },
            documentation: TEXT,
          }),
        },
        BESIDE,
      );
  }
}
