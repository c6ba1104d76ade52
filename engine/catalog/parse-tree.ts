/** A column of a query that is a table's column, unchanged. */
export type Target = { readonly position: number; readonly table: number; readonly column: number };

/**
 * The columns that a view takes over from its tables, read from its query tree as `pg_rewrite.ev_action` spells it:
 * `({QUERY … :targetList ({TARGETENTRY … :resno 1 … :resorigtbl 16385 :resorigcol 2 :resjunk false} …) …})`.
 * Takes the tree, or only what follows the words `:targetList ` of its outermost query.
 * In names a backslash stands before blanks and brackets, so that plain ones are always structure.
 */
export function parseTargets(tree: string): Target[] {
  const start = tree.startsWith("({QUERY") ? targetListOf(tree) : 0;
  const targets: Target[] = [];
  // An empty list is spelled `<>`.
  if (tree[start] !== "(") return targets;
  for (let at = start + 1; tree[at] === "{" || tree[at] === " "; ) {
    if (tree[at] === " ") {
      at++;
      continue;
    }
    const end = endOfBrackets(tree, at);
    const target = parseTarget(tree.slice(at, end));
    if (target) targets.push(target);
    at = end;
  }
  return targets;
}

const LABEL = " :targetList ";

function targetListOf(tree: string): number {
  for (let at = "({".length; at < tree.length; ) {
    switch (tree[at]) {
      case "\\":
        at += 2;
        break;
      case "{":
      case "(":
        at = endOfBrackets(tree, at);
        break;
      case " ":
        if (tree.startsWith(LABEL, at)) return at + LABEL.length;
        at++;
        break;
      default:
        at++;
    }
  }
  throw new Error("A view's query tree has no target list");
}

function endOfBrackets(tree: string, start: number): number {
  let depth = 0;
  for (let at = start; at < tree.length; at++) {
    switch (tree[at]) {
      case "\\":
        at++;
        break;
      case "{":
      case "(":
        depth++;
        break;
      case "}":
      case ")":
        if (--depth === 0) return at + 1;
    }
  }
  throw new Error("A view's query tree ends too early");
}

function parseTarget(entry: string): Target | null {
  // The entry's own fields come after those of the expression inside it.
  const fields = entry.slice(entry.lastIndexOf(" :resno "));
  const numberAfter = (field: string) => Number(new RegExp(` :${field} (\\d+)`).exec(fields)?.[1]);
  const [position, table, column] = [numberAfter("resno"), numberAfter("resorigtbl"), numberAfter("resorigcol")];
  if (!position || !table || !column || / :resjunk true/.test(fields)) return null;
  return { position, table, column };
}
