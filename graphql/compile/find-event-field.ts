import { type FieldNode, type GraphQLError, getOperationAST, getVariableValues } from "grafast/graphql";
import { type FieldSource, sourceOf } from "#plugins";
import { argumentValue, OperationValues, type RequestedOperation } from "./operation-values.ts";
import { SelectionReader } from "./selection-reader.ts";

/** The field of a subscription, with the value of its argument. */
export type EventField = {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly source: Extract<FieldSource, { readonly kind: "event" }>;
  readonly value: unknown;
};

/** Returns the errors of variables, if there are any. */
export function findEventField({
  schema,
  document,
  operationName,
  variables: inputs,
}: RequestedOperation): EventField | readonly GraphQLError[] {
  const operation = getOperationAST(document, operationName)!;
  const { coerced: variables, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], inputs);
  if (!variables) return errors!;
  const type = schema.getSubscriptionType()!;
  const values = new OperationValues(schema, variables, new Set());
  const selected = new SelectionReader(schema, document, values).fieldsOf(type, [operation.selectionSet]);
  // A subscription has one field, which validation ensures.
  const [key, nodes] = [...selected][0]!;
  const field = type.getFields()[nodes[0]!.name.value]!;
  const source = sourceOf(field) as EventField["source"];
  const args = values.argumentsOf(field, nodes[0]!, ({ name }) => name === source.argument);
  const given = source.argument === null ? undefined : args.get(source.argument);
  return { key, nodes, source, value: given && argumentValue(given, variables) };
}
