/** `name`, or `"odd name"`. */
export function property(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** `name: { … }`, or what supabase-js takes for a group without members. */
export function block(name: string, members: readonly string[]): string {
  if (members.length === 0) return `${property(name)}: { [_ in never]: never };`;
  return `${property(name)}: {\n${indented(members.join("\n"))}\n};`;
}

export function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
