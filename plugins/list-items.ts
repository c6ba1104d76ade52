import { GraphQLList, GraphQLNonNull, type GraphQLType, isListType, isNonNullType } from "postgraphile/graphql";

/** `[String]!` -> `[String!]!`. */
export function withoutHoles<Type extends GraphQLType>(type: Type): Type {
  if (isNonNullType(type)) return new GraphQLNonNull(withoutHoles(type.ofType)) as GraphQLType as Type;
  if (!isListType(type) || isNonNullType(type.ofType)) return type;
  return new GraphQLList(new GraphQLNonNull(type.ofType)) as GraphQLType as Type;
}

/** `[String!]!` -> `[String]!`. */
export function withHoles<Type extends GraphQLType>(type: Type): Type {
  if (isNonNullType(type)) return new GraphQLNonNull(withHoles(type.ofType)) as GraphQLType as Type;
  if (!isListType(type) || !isNonNullType(type.ofType)) return type;
  return new GraphQLList(type.ofType.ofType) as GraphQLType as Type;
}
