import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  print,
  separateOperations,
} from "grafast/graphql";
import { OperationValues } from "../compile/operation-values.ts";
import { type SelectedField, SelectionReader } from "../compile/selection-reader.ts";

/** The query of a live query's subfields. */
export type LiveDocument = {
  /** The key of the result in `data`: `live`, or its alias. */
  readonly key: string;
  readonly query: string;
};

/** The live document of a subscription to `live`, in a valid document; null for other operations. */
export function toLiveDocument(
  document: DocumentNode,
  operationName: string | undefined,
  schema: GraphQLSchema,
): LiveDocument | null {
  const operation = getOperationAST(document, operationName)!;
  const type = schema.getSubscriptionType();
  if (operation.operation !== OperationTypeNode.SUBSCRIPTION || !type) return null;
  // Conditions at the root do not depend on variables.
  const reader = new SelectionReader(schema, document, new OperationValues(schema, {}, new Set()));
  const [[key, nodes]] = [...reader.fieldsOf(type, [operation.selectionSet])] as readonly SelectedField[] as [
    SelectedField,
  ];
  const field = type.getFields()[nodes[0]!.name.value];
  if (!field || getNamedType(field.type) !== schema.getQueryType()) return null;
  const query: OperationDefinitionNode = {
    ...operation,
    operation: OperationTypeNode.QUERY,
    selectionSet: {
      kind: Kind.SELECTION_SET,
      selections: nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []),
    },
  };
  const definitions = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const separate = separateOperations({ kind: Kind.DOCUMENT, definitions: [query, ...definitions] });
  return { key, query: print(separate[operationName ?? ""]!) };
}
