/** An operation as the document has it. */
export type Operation = { readonly [key: string]: unknown };
export type PathItem = { readonly [method: string]: Operation | undefined };

/** Entries without what is absent. */
export function withoutAbsent(item: PathItem): PathItem {
  return Object.fromEntries(Object.entries(item).filter(([, operation]) => operation !== undefined));
}
