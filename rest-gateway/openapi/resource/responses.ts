import type { ErrorBodyShape } from "../../../http/error-bodies.ts";
import { componentRef, type ErrorStatusOf, errorRefs, errorResponses } from "../components.ts";
import { type JsonSchema, objectOf } from "../json-schema.ts";
import components from "./components.json" with { type: "json" };

export type ResourceErrorStatus = ErrorStatusOf<typeof components.errors>;

/** Errors that every operation can have. */
const COMMON_STATUSES: readonly ResourceErrorStatus[] = [400, 401, 406, 410, 429, 500, 503, 504];

export function resourceErrorResponses(): Generator<[string, object]> {
  return errorResponses(components.errors, componentRef("schemas", "error"));
}

/** References to the responses of these errors and of those that every operation can have. */
export function resourceErrorRefs(...statuses: readonly ResourceErrorStatus[]): ReturnType<typeof errorRefs> {
  return errorRefs([...new Set([...statuses, ...COMMON_STATUSES])].sort());
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
