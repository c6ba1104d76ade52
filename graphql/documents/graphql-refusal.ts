import { type ASTNode, GraphQLError } from "grafast/graphql";

/** Thrown when a request is refused before execution. */
export class GraphqlRefusal extends Error {
  override name = "Refusal";
  readonly errors: readonly GraphQLError[];

  constructor(errors: readonly GraphQLError[]) {
    super(errors[0]?.message ?? "refused");
    this.errors = errors;
  }
}

export function refusalOf(message: string, code: string, nodes: ASTNode | null = null): GraphqlRefusal {
  return new GraphqlRefusal([new GraphQLError(message, { nodes, extensions: { code } })]);
}
