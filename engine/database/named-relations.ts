const NAME = '(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)';
const NAMED = new RegExp(`\\b(?:from|join|into|update)\\s+(?:only\\s+)?(${NAME})\\.(${NAME})`, "gi");
const SYSTEM = '"pg_catalog"';
/** Beyond this it makes no difference which ones. */
const MOST = 16;

/**
 * The tables, views and functions that a statement names with their schema, each as SQL spells it; but for those of the
 * system, which are read by most. Views and policies read others.
 */
export function namedRelations(text: string): readonly string[] {
  const names = new Set<string>();
  for (const [, schema, name] of text.matchAll(NAMED)) {
    if (quoted(schema!) !== SYSTEM) names.add(`${quoted(schema!)}.${quoted(name!)}`);
    if (names.size === MOST) break;
  }
  return [...names];
}

function quoted(name: string): string {
  return name.startsWith('"') ? name : `"${name.toLowerCase()}"`;
}
