import {
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
} from "grafast/graphql";
import { isIdScalar, takesExactNumbers } from "#plugins";
import { isExactNumber, isJsonObject } from "#runtime/json";

export type OperationVariables = Readonly<Record<string, unknown>>;

/** Restores the digits that JSON.parse took from variables whose types can hold them. */
export type RestoreDigits = (
  variables: OperationVariables,
  parseExactly: () => OperationVariables,
) => OperationVariables;

/** Null when no variable has a type that can hold exact numbers. */
export function makeRestoreDigits(
  { variableDefinitions = [] }: OperationDefinitionNode,
  schema: GraphQLSchema,
): RestoreDigits | null {
  const types = variableDefinitions.flatMap(({ variable, type: node }): [string, GraphQLInputType][] => {
    const type = typeFromAST(schema, node as Parameters<typeof typeFromAST>[1]) as GraphQLInputType | undefined;
    return type && canHoldExactNumbers(type, new Set()) ? [[variable.name.value, type]] : [];
  });
  if (types.length === 0) return null;
  return (variables, parseExactly) => {
    if (!types.some(([name, type]) => mayHaveLostDigits(type, variables[name]))) return variables;
    const exact = parseExactly();
    const restored = types.map(([name, type]) => [name, restoreValue(type, variables[name], exact[name])] as const);
    return { ...variables, ...Object.fromEntries(restored.filter(([name]) => Object.hasOwn(variables, name))) };
  };
}

function canHoldExactNumbers(type: GraphQLInputType, seen: Set<object>): boolean {
  const named = getNamedType(type);
  if (isIdScalar(named) || takesExactNumbers(named)) return true;
  if (!isInputObjectType(named) || seen.has(named)) return false;
  seen.add(named);
  return Object.values(named.getFields()).some((field) => canHoldExactNumbers(field.type, seen));
}

function mayHaveLostDigits(type: GraphQLInputType, value: unknown): boolean {
  if (isNonNullType(type)) return mayHaveLostDigits(type.ofType, value);
  if (typeof value === "number" && isIdScalar(type)) return !Number.isSafeInteger(value);
  if (typeof value === "number") return takesExactNumbers(getNamedType(type));
  if (typeof value !== "object" || value === null) return false;
  if (isListType(type)) return [value].flat().some((item) => mayHaveLostDigits(type.ofType, item));
  if (isInputObjectType(type)) {
    return Object.values(type.getFields()).some((field) => mayHaveLostDigits(field.type, memberOf(value, field.name)));
  }
  return takesExactNumbers(type);
}

function restoreValue(type: GraphQLInputType, value: unknown, exact: unknown): unknown {
  if (isNonNullType(type)) return restoreValue(type.ofType, value, exact);
  if (isListType(type)) {
    if (!Array.isArray(value) || !Array.isArray(exact)) return restoreValue(type.ofType, value, exact);
    return value.map((item, index) => restoreValue(type.ofType, item, exact[index]));
  }
  if (isInputObjectType(type)) {
    if (!isJsonObject(value)) return value;
    const members = Object.entries(value).map(([name, member]) => {
      const field = type.getFields()[name];
      return [name, field ? restoreValue(field.type, member, memberOf(exact, name)) : member] as const;
    });
    return Object.fromEntries(members);
  }
  if (isIdScalar(type)) return isExactNumber(exact) && /^-?\d+$/.test(exact.rawJSON) ? exact.rawJSON : value;
  return takesExactNumbers(type) ? exact : value;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as OperationVariables)[name]
    : undefined;
}
