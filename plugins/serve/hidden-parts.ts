import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
} from "postgraphile/graphql";
import type { Stepwise } from "../../engine/stepwise.ts";
import { type RolePrivileges, typeWithoutRowOf, visibilityOf } from "../visibility.ts";

type Field = GraphQLField<unknown, unknown>;
type Part = GraphQLNamedType | Field | GraphQLArgument | GraphQLInputField;

export type HiddenParts = ReadonlySet<Part>;

/** What the role has no privileges for in a schema, and what is useless without that. */
export function* findHiddenParts(schema: GraphQLSchema, role: RolePrivileges): Stepwise<HiddenParts> {
  const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
  const hidden = new Set<Part>();
  for (const type of types) {
    for (const part of forbiddenParts(type, schema, role)) hidden.add(part);
    yield;
  }
  let known = 0;
  while (known < hidden.size) {
    known = hidden.size;
    for (const type of types) {
      for (const part of uselessParts(type, hidden)) hidden.add(part);
      yield;
    }
  }
  return hidden;
}

function forbiddenParts(type: GraphQLNamedType, schema: GraphQLSchema, role: RolePrivileges): Part[] {
  const isForbidden = (part: Exclude<Part, GraphQLNamedType>) => visibilityOf(part)?.(role) === false;
  if (isInputObjectType(type)) return Object.values(type.getFields()).filter(isForbidden);
  return fieldsOf(type).flatMap((field): Part[] =>
    versionsOf(field, type, schema).some(isForbidden) ? [field] : field.args.filter(isForbidden),
  );
}

/** An interface has the fields that all of its types have. */
function versionsOf(field: Field, type: GraphQLNamedType, schema: GraphQLSchema): Field[] {
  if (!isInterfaceType(type)) return [field];
  const { objects, interfaces } = schema.getImplementations(type);
  return [field, ...[...objects, ...interfaces].flatMap((other) => other.getFields()[field.name] ?? [])];
}

/** What is of a type that is hidden, and types with nothing in them. */
function uselessParts(type: GraphQLNamedType, hidden: HiddenParts): Part[] {
  const isHidden = (of: GraphQLType) => hidden.has(getNamedType(of));
  if (isUnionType(type)) return type.getTypes().every(isHidden) ? [type] : [];
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields());
    const useless = fields.filter((field) => isHidden(field.type));
    return useless.some(isRequiredInputField) || fields.every((field) => hidden.has(field)) ? [type] : useless;
  }
  const fields = fieldsOf(type);
  if (fields.length > 0 && fields.every((field) => hidden.has(field))) return [type];
  return fields.flatMap((field): Part[] => {
    const useless = field.args.filter((argument) => isHidden(argument.type));
    return (isHidden(field.type) && !typeWithoutRowOf(field)) || useless.some(isRequiredArgument) ? [field] : useless;
  });
}

/** None for what is no object and no interface. */
function fieldsOf(type: GraphQLNamedType): Field[] {
  return isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
}
