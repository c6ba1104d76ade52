/** `name`, or `"odd name"`. */
export function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** `name: { … }`, or the empty group of supabase-js. */
export function typeBlock(name: string, members: readonly string[]): string {
  if (members.length === 0) return `${propertyName(name)}: { [_ in never]: never };`;
  return `${propertyName(name)}: {\n${indented(members.join("\n"))}\n};`;
}

export function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "  ");
}
