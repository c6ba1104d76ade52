import type { GraphQLError } from "grafast/graphql";

/** Thrown when a request is refused before execution. */
export class GraphqlRefusal extends Error {
  override name = "Refusal";
  readonly errors: readonly GraphQLError[];

  constructor(errors: readonly GraphQLError[]) {
    super(errors[0]?.message ?? "refused");
    this.errors = errors;
  }
}
