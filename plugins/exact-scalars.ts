import { GraphQLID, isScalarType } from "postgraphile/graphql";

type ExactNumbersMark = { readonly takesExactNumbers?: true };

/** Extensions of a scalar whose `parseValue` takes an ExactNumber in the place of a number. */
export const TAKES_EXACT_NUMBERS: ExactNumbersMark = { takesExactNumbers: true };

export function takesExactNumbers(type: object | undefined): boolean {
  return isScalarType(type) && (type.extensions as ExactNumbersMark).takesExactNumbers === true;
}

/** GraphQL's own: it takes a number for the text that JavaScript makes of it. */
export function isId(type: object): boolean {
  return type === GraphQLID;
}
