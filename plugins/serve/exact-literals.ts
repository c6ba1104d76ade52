import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from "postgraphile/graphql";
import { parseNumber } from "../../engine/exact-json.ts";
import { takesExactNumbers } from "../exact-scalars.ts";

/**
 * Grafast makes the values of lists and objects of JSON itself, with numbers of JavaScript, and takes booleans as they stand in
 * their nodes. So numbers that would lose digits become such nodes.
 */
export function keepDigits(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  let levels = 0;
  const container: Container = {
    enter() {
      if (isJson(types)) levels += 1;
    },
    leave() {
      if (isJson(types)) levels -= 1;
    },
  };
  const number = ({ value }: { readonly value: string }) => (levels > 0 ? exactNode(value) : undefined);
  const visitor = { ObjectValue: container, ListValue: container, IntValue: number, FloatValue: number };
  return visit(document, visitWithTypeInfo(types, visitor));
}

type Container = { readonly enter: () => void; readonly leave: () => void };

/** What lies within an object of JSON is of no type. */
function isJson(types: TypeInfo): boolean {
  return takesExactNumbers(getNamedType(types.getInputType()) ?? undefined);
}

function exactNode(text: string) {
  const value = parseNumber(text);
  return typeof value === "number" ? undefined : { kind: Kind.BOOLEAN, value };
}
