/** Types, fields and arguments of GraphQL. */
export type WithExtensions = { readonly extensions?: object | null | undefined };

type Extension<Value> = {
  readonly add: <Part extends object>(part: Part & WithExtensions, value: Value) => Part;
  /** Null for a part without it. */
  readonly of: (part: WithExtensions) => Value | null;
};

/** A value of that name in the extensions of parts of the schema. */
export function makeExtension<Value>(name: string): Extension<Value> {
  return {
    add: (part, value) => ({ ...part, extensions: { ...part.extensions, [name]: value } }),
    of: ({ extensions }) => (extensions as Readonly<Record<string, Value>> | null | undefined)?.[name] ?? null,
  };
}
