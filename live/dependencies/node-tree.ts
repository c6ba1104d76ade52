/** A parsed expression or query, as Postgres stores it. */
export type TreeNode = { readonly type: string; readonly fields: ReadonlyMap<string, TreeValue> };
export type TreeValue = string | TreeNode | readonly TreeValue[];

/** Whitespace and brackets separate tokens unless a backslash precedes them. */
const TOKEN = /[{}()]|(?:\\[\s\S]|[^\s(){}\\])+/g;

/** Reads the text of a `pg_node_tree`: `{TYPE :field value …}`, with lists in parentheses and `<>` for null. */
export function parseNodeTree(text: string): TreeValue {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const readUntil = (end: string): TreeValue[] => {
    const values: TreeValue[] = [];
    while (at < tokens.length && tokens[at] !== end) values.push(readValue());
    at++;
    return values;
  };
  const readNode = (): TreeNode => {
    const type = tokens[at++]!;
    const fields = new Map<string, TreeValue>();
    while (at < tokens.length && tokens[at] !== "}") {
      const name = tokens[at++]!.slice(1);
      // The first value may begin like the name of a field.
      const values = [readValue()];
      while (at < tokens.length && tokens[at] !== "}" && !tokens[at]!.startsWith(":")) values.push(readValue());
      fields.set(name, values.length === 1 ? values[0]! : values);
    }
    at++;
    return { type, fields };
  };
  const readValue = (): TreeValue => {
    const token = tokens[at++]!;
    if (token === "{") return readNode();
    return token === "(" ? readUntil(")") : token;
  };
  return readValue();
}

export function isNode(value: TreeValue | undefined): value is TreeNode {
  return typeof value === "object" && !Array.isArray(value);
}

/** The nodes of a list; empty for null. */
export function nodesOf(value: TreeValue | undefined): TreeNode[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/** All nodes of a type. */
export function* findNodes(value: TreeValue, type: string): Generator<TreeNode> {
  if (Array.isArray(value)) for (const each of value) yield* findNodes(each, type);
  else if (isNode(value)) {
    if (value.type === type) yield value;
    for (const each of value.fields.values()) yield* findNodes(each, type);
  }
}
