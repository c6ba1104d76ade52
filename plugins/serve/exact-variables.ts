import {
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
} from "postgraphile/graphql";
import { isExactNumber } from "../../engine/exact-json.ts";
import { isJsonObject } from "../../engine/json-object.ts";
import { isId, takesExactNumbers } from "../exact-scalars.ts";

export type Variables = Readonly<Record<string, unknown>>;

/** Gives the variables of an operation the digits that JSON.parse took from them, where their types have room for them. */
export type RestoreDigits = (variables: Variables, parseExactly: () => Variables) => Variables;

/** Null where no variable can have lost digits that it could keep. */
export function makeRestoreDigits(
  { variableDefinitions = [] }: OperationDefinitionNode,
  schema: GraphQLSchema,
): RestoreDigits | null {
  const types = variableDefinitions.flatMap(({ variable, type: node }): [string, GraphQLInputType][] => {
    const type = typeFromAST(schema, node as Parameters<typeof typeFromAST>[1]) as GraphQLInputType | undefined;
    return type && hasRoom(type, new Set()) ? [[variable.name.value, type]] : [];
  });
  if (types.length === 0) return null;
  return (variables, parseExactly) => {
    if (!types.some(([name, type]) => mayHaveLost(type, variables[name]))) return variables;
    const exact = parseExactly();
    const restored = types.map(([name, type]) => [name, restore(type, variables[name], exact[name])] as const);
    return { ...variables, ...Object.fromEntries(restored.filter(([name]) => Object.hasOwn(variables, name))) };
  };
}

function hasRoom(type: GraphQLInputType, seen: Set<object>): boolean {
  const named = getNamedType(type);
  if (isId(named) || takesExactNumbers(named)) return true;
  if (!isInputObjectType(named) || seen.has(named)) return false;
  seen.add(named);
  return Object.values(named.getFields()).some((field) => hasRoom(field.type, seen));
}

function mayHaveLost(type: GraphQLInputType, value: unknown): boolean {
  if (isNonNullType(type)) return mayHaveLost(type.ofType, value);
  if (typeof value === "number" && isId(type)) return !Number.isSafeInteger(value);
  if (typeof value === "number") return takesExactNumbers(getNamedType(type));
  if (typeof value !== "object" || value === null) return false;
  if (isListType(type)) return [value].flat().some((item) => mayHaveLost(type.ofType, item));
  if (isInputObjectType(type)) {
    return Object.values(type.getFields()).some((field) => mayHaveLost(field.type, memberOf(value, field.name)));
  }
  return takesExactNumbers(type);
}

function restore(type: GraphQLInputType, value: unknown, exact: unknown): unknown {
  if (isNonNullType(type)) return restore(type.ofType, value, exact);
  if (isListType(type)) {
    if (!Array.isArray(value) || !Array.isArray(exact)) return restore(type.ofType, value, exact);
    return value.map((item, index) => restore(type.ofType, item, exact[index]));
  }
  if (isInputObjectType(type)) {
    if (!isJsonObject(value)) return value;
    const members = Object.entries(value).map(([name, member]) => {
      const field = type.getFields()[name];
      return [name, field ? restore(field.type, member, memberOf(exact, name)) : member] as const;
    });
    return Object.fromEntries(members);
  }
  if (isId(type)) return isExactNumber(exact) && /^-?\d+$/.test(exact.rawJSON) ? exact.rawJSON : value;
  return takesExactNumbers(type) ? exact : value;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Variables)[name]
    : undefined;
}
