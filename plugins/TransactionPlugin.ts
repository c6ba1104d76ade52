import { DirectiveLocation, GraphQLDirective, type OperationDefinitionNode } from "grafast/graphql";

const TRANSACTION = new GraphQLDirective({
  name: "transaction",
  description:
    "Runs all fields of the mutation in one transaction, in order. If one fails, nothing is changed, and the errors say which one.",
  locations: [DirectiveLocation.MUTATION],
});

export const TransactionPlugin: GraphileConfig.Plugin = {
  name: "TransactionPlugin",
  description: "Adds the directive @transaction for mutations",
  schema: {
    hooks: {
      GraphQLSchema: (config) => ({ ...config, directives: [...(config.directives ?? []), TRANSACTION] }),
    },
  },
};

/** True if the operation commits either all its fields or none. */
export function isTransaction({ directives = [] }: OperationDefinitionNode): boolean {
  return directives.some(({ name }) => name.value === TRANSACTION.name);
}
