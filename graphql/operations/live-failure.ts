import type { GraphQLError } from "grafast/graphql";
import { toHttpError } from "#http";
import { isSchemaOutdated, SCHEMA_CHANGED_MESSAGE } from "#postgres/database";
import { ApiError, unavailable } from "#runtime";

/** The failure of a live query whose run has errors: it has no result. Its kind is that of its first error. */
export class LiveQueryFailure extends ApiError {
  override name = "LiveQueryFailure";
  readonly errors: readonly GraphQLError[];

  constructor(errors: readonly GraphQLError[]) {
    const { kind, code, message } = toHttpError(errors[0]?.originalError);
    super(kind, code, message);
    this.errors = errors;
  }
}

/** An outdated schema is replaced soon, and the query can run again then. */
export function failureOf(errors: readonly GraphQLError[]): ApiError {
  const original = errors[0]?.originalError;
  return isSchemaOutdated(original) ? unavailable(SCHEMA_CHANGED_MESSAGE, original) : new LiveQueryFailure(errors);
}
