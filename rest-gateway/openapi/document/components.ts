const WORD = /^\w+$/;

/**
 * Encodes a name as a component key, which may have letters, digits, `_`, `-` and `.`: `odd table` becomes
 * `odd-20-table`. Keys are unique and have no dot, which is left for joining keys.
 */
export function componentKey(name: string): string {
  if (WORD.test(name)) return name;
  return [...name].map((letter) => (WORD.test(letter) ? letter : `-${letter.codePointAt(0)!.toString(16)}-`)).join("");
}

type ComponentKind = "schemas" | "parameters" | "responses" | "headers";
export type ComponentReference = { readonly $ref: string };

export function componentRef(kind: ComponentKind, key: string): ComponentReference {
  return { $ref: `#/components/${kind}/${key}` };
}

/** The statuses among the keys of a list of errors. */
export type ErrorStatusOf<Errors> = {
  [Key in keyof Errors]: Key extends `${infer Status extends number}` ? Status : never;
}[keyof Errors];

/** The response components of errors, by status. */
export function* errorResponses(
  errors: Readonly<Record<string, object>>,
  schema: ComponentReference,
): Generator<[string, object]> {
  const content = { "application/json": { schema } };
  for (const [status, error] of Object.entries(errors)) yield [`error.${status}`, { ...error, content }];
}

export function errorRefs(statuses: Iterable<number | string>): Readonly<Record<string, ComponentReference>> {
  return Object.fromEntries([...statuses].map((status) => [status, componentRef("responses", `error.${status}`)]));
}
