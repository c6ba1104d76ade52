import {
  buildSchema,
  DangerousChangeType,
  findBreakingChanges,
  findDangerousChanges,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInterfaceType,
  isObjectType,
} from "grafast/graphql";
import type { SurfaceChange } from "./contract.ts";

/** The changes that graphql-js calls dangerous, but that are harmless to clients, which send JSON by name. */
const COMPATIBLE: readonly string[] = [
  DangerousChangeType.OPTIONAL_ARG_ADDED,
  DangerousChangeType.OPTIONAL_INPUT_FIELD_ADDED,
];

/** Changes between two schemas in the schema definition language, as graphql-js finds them. The `object` is the kind of change. */
export function graphqlChanges(before: string, after: string): SurfaceChange[] {
  if (before === after) return [];
  const [was, now] = [before, after].map((text) => buildSchema(text, { assumeValidSDL: true }));
  const breaking = findBreakingChanges(was!, now!).map(
    ({ type, description }): SurfaceChange => ({ level: "breaking", object: type, message: description }),
  );
  const outputEnums = listOutputEnums(now!);
  const dangerous = findDangerousChanges(was!, now!).map(({ type, description }): SurfaceChange => {
    const isSentOnly =
      type === DangerousChangeType.VALUE_ADDED_TO_ENUM &&
      !outputEnums.some((name) => description.endsWith(`enum type ${name}.`));
    return {
      level: COMPATIBLE.includes(type) || isSentOnly ? "compatible" : "dangerous",
      object: type,
      message: description,
    };
  });
  const known = listFields(was!);
  const fields = [...listFields(now!)].filter((field) => !known.has(field));
  return [
    ...breaking,
    ...dangerous,
    ...fields.map((field): SurfaceChange => ({ level: "compatible", object: field, message: "The field is new." })),
  ];
}

/** Lists the enums in results. A new value of another enum, such as an order, is only sent by clients that know it. */
function listOutputEnums(schema: GraphQLSchema): string[] {
  const types = outputTypes(schema).flatMap((type) =>
    Object.values(type.getFields()).map((field) => getNamedType(field.type)),
  );
  return [...new Set(types.filter(isEnumType).map(({ name }) => name))];
}

function listFields(schema: GraphQLSchema): ReadonlySet<string> {
  return new Set(
    outputTypes(schema).flatMap((type) => Object.keys(type.getFields()).map((field) => `${type.name}.${field}`)),
  );
}

function outputTypes(schema: GraphQLSchema): (GraphQLInterfaceType | GraphQLObjectType)[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .filter(({ name }) => !name.startsWith("__"));
}
