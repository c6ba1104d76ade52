import { type GraphQLSchema, isInputObjectType } from "postgraphile/graphql";

/**
 * Whether an input has a field, of a column `constructor`, say, that every object of JavaScript seems to have: whoever leaves
 * it out would be taken to have sent that.
 */
export function hasInheritedNames(schema: GraphQLSchema): boolean {
  return Object.values(schema.getTypeMap())
    .filter(isInputObjectType)
    .some((type) => Object.keys(type.getFields()).some((name) => name in Object.prototype));
}

/** Leaves the objects of a value that came as JSON nothing that was not sent. In place: it may be too deep to be walked by calls. */
export function dropPrototypes(value: unknown): void {
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    if (!Array.isArray(next)) Object.setPrototypeOf(next, null);
    for (const item of Object.values(next)) waiting.push(item);
  }
}
