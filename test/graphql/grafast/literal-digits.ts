import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "grafast/graphql";
import { takesExactNumbers } from "../../../plugins/graphql-types.ts";
import { parseJsonNumber } from "../../../runtime/json/json-values.ts";

/**
 * Grafast builds the values of JSON lists and objects itself, with JavaScript numbers, and copies the values of boolean nodes. So
 * number literals that would lose digits become boolean nodes with an ExactNumber as value.
 */
export function keepLiteralDigits(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  let levels = 0;
  const container: ContainerVisitor = {
    enter() {
      if (isInJsonValue(types)) levels += 1;
    },
    leave() {
      if (isInJsonValue(types)) levels -= 1;
    },
  };
  const number = ({ value }: { readonly value: string }) => (levels > 0 ? toExactNode(value) : undefined);
  const visitor = { ObjectValue: container, ListValue: container, IntValue: number, FloatValue: number };
  return visit(document, visitWithTypeInfo(types, visitor));
}

type ContainerVisitor = { readonly enter: () => void; readonly leave: () => void };

/** Values within a JSON object have no type. */
function isInJsonValue(types: TypeInfo): boolean {
  return takesExactNumbers(getNamedType(types.getInputType()) ?? undefined);
}

function toExactNode(text: string) {
  const value = parseJsonNumber(text);
  return typeof value === "number" ? undefined : { kind: Kind.BOOLEAN, value };
}
