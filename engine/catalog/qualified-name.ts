export type QualifiedName = { readonly schema: string; readonly name: string };
