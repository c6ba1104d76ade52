import type { PgCodecAnyScalar } from "postgraphile/@dataplan/pg";
import {
  GraphQLID,
  GraphQLList,
  GraphQLNonNull,
  type GraphQLType,
  isListType,
  isNonNullType,
  isScalarType,
} from "postgraphile/graphql";
import type { Codec } from "./table.ts";

/** Extensions of a scalar whose `parseValue` takes an ExactNumber in the place of a number. */
export const TAKES_EXACT_NUMBERS: ExactNumbersExtension = { takesExactNumbers: true };

const DEFAULT_DEPRECATION = "No longer supported";

/** `[String]!` -> `[String!]!`. */
export function withNonNullItems<Type extends GraphQLType>(type: Type): Type {
  if (isNonNullType(type)) return new GraphQLNonNull(withNonNullItems(type.ofType)) as GraphQLType as Type;
  if (!isListType(type) || isNonNullType(type.ofType)) return type;
  return new GraphQLList(new GraphQLNonNull(type.ofType)) as GraphQLType as Type;
}

/** `[String!]!` -> `[String]!`. */
export function withNullableItems<Type extends GraphQLType>(type: Type): Type {
  if (isNonNullType(type)) return new GraphQLNonNull(withNullableItems(type.ofType)) as GraphQLType as Type;
  if (!isListType(type) || !isNonNullType(type.ofType)) return type;
  return new GraphQLList(type.ofType.ofType) as GraphQLType as Type;
}

type ExactNumbersExtension = { readonly takesExactNumbers?: true };

export function takesExactNumbers(type: object | undefined): boolean {
  return isScalarType(type) && (type.extensions as ExactNumbersExtension).takesExactNumbers === true;
}

/** GraphQL's own: it takes a number for the text that JavaScript makes of it. */
export function isIdScalar(type: object): boolean {
  return type === GraphQLID;
}

/** The names of the scalars of domains over some types: core copies what it knows of those types, without what plugins changed of them. */
export function domainScalarNames(
  { allPgCodecs, inflection }: GraphileBuild.Build,
  isBaseCodec: (codec: Codec) => boolean,
): string[] {
  return [...allPgCodecs]
    .filter(({ domainOfCodec }) => domainOfCodec && isBaseCodec(domainOfCodec))
    .map((codec) => inflection.scalarCodecTypeName(codec as PgCodecAnyScalar));
}

type DeprecationTag = null | true | string | readonly (string | true)[] | undefined;

/** What `@deprecated Use that instead.` says. */
export function deprecationReasonOf(tag: DeprecationTag): string | undefined {
  if (tag == null) return undefined;
  const lines = [tag].flat().filter((line) => typeof line === "string");
  return lines.join("\n") || DEFAULT_DEPRECATION;
}

/** What a tag of a whole says about one of its parts: `@deprecatedValue ARCHIVED Delete it.` */
export function deprecationReasonOfPart(tag: DeprecationTag, part: string): string | undefined {
  const lines = [tag].flat().filter((line) => typeof line === "string");
  const line = lines.find((text) => text === part || text.startsWith(`${part} `));
  return line === undefined ? undefined : line.slice(part.length).trim() || DEFAULT_DEPRECATION;
}
