const PLAIN = /^\w+$/;

/**
 * A name as the key of a component, which may consist of letters, digits, `_`, `-` and `.` only: `odd table` is
 * `odd-20-table`. No two names get the same key, and none has a dot: that is left for putting keys together.
 */
export function componentKey(name: string): string {
  if (PLAIN.test(name)) return name;
  return [...name].map((letter) => (PLAIN.test(letter) ? letter : `-${letter.codePointAt(0)!.toString(16)}-`)).join("");
}

export type ComponentKind = "schemas" | "parameters" | "responses" | "headers";
export type Reference = { readonly $ref: string };

export function referTo(kind: ComponentKind, key: string): Reference {
  return { $ref: `#/components/${kind}/${key}` };
}
