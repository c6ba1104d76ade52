import type { PgCodecAnyScalar } from "@dataplan/pg";
import {
  GraphQLID,
  GraphQLList,
  GraphQLNonNull,
  type GraphQLType,
  isListType,
  isNonNullType,
  isScalarType,
} from "grafast/graphql";
import { memoizePerObject } from "#runtime";
import { baseCodecOf } from "./codecs.ts";
import type { Codec } from "./table.ts";

/** Extensions of a scalar whose `parseValue` accepts an ExactNumber instead of a number. */
export const TAKES_EXACT_NUMBERS = { takesExactNumbers: true };

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

export function takesExactNumbers(type: object | undefined): boolean {
  return isScalarType(type) && type.extensions.takesExactNumbers === true;
}

/** GraphQL's own ID, which converts numbers by JavaScript's rules. */
export function isIdScalar(type: object): boolean {
  return type === GraphQLID;
}

/**
 * The names of a built-in scalar and of the scalars of domains over it: for a domain, core copies the scalar that it knows, without
 * the changes of plugins.
 */
export function scalarNamesOver(
  builtIn: string,
  isOfScalar: (baseCodec: Codec) => boolean,
): (build: GraphileBuild.Build) => ReadonlySet<string> {
  return memoizePerObject(({ allPgCodecs, inflection }: GraphileBuild.Build) => {
    const domains = [...allPgCodecs].filter((codec) => codec.domainOfCodec && isOfScalar(baseCodecOf(codec)));
    const names = domains.map((codec) => inflection.scalarCodecTypeName(codec as PgCodecAnyScalar));
    return new Set([inflection.builtin(builtIn), ...names]);
  });
}

type DeprecationTag = null | true | string | readonly (string | true)[] | undefined;

/** The reason given by `@deprecated Use that instead.` */
export function deprecationReasonOf(tag: DeprecationTag): string | undefined {
  if (tag == null) return undefined;
  const lines = [tag].flat().filter((line) => typeof line === "string");
  return lines.join("\n") || DEFAULT_DEPRECATION;
}

/** The reason that a tag gives for one part: `@deprecatedValue ARCHIVED Delete it.` */
export function deprecationReasonOfPart(tag: DeprecationTag, part: string): string | undefined {
  const lines = [tag].flat().filter((line) => typeof line === "string");
  const line = lines.find((text) => text === part || text.startsWith(`${part} `));
  return line === undefined ? undefined : line.slice(part.length).trim() || DEFAULT_DEPRECATION;
}
