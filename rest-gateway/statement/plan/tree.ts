import { ApiError } from "../../../engine/errors.ts";
import type { Condition, OrderTerm, Placed, SelectedColumn, SelectedRelation, Shape, Window } from "../intent.ts";

/** A selection as the client described it: what it asks of its own rows, and what is embedded in them. */
export type Node = {
  readonly columns: readonly SelectedColumn[];
  readonly children: readonly Branch[];
  readonly conditions: Condition[];
  order: readonly OrderTerm[];
  window: Window | null;
};
export type Branch = Node & { readonly relation: SelectedRelation };

export type Addressing = {
  /** A relation with an alias is also found by its own name. */
  readonly legacyTargetNames: boolean;
  /** Told of each that was found so. */
  readonly onLegacyName?: (target: LegacyTarget) => void;
};

/** A relation that has an alias, and was called by its own name. */
export type LegacyTarget = { readonly name: string; readonly alias: string };

/** Conditions, orders and windows, each brought to the relation that it is about. */
export function plant({ select, conditions, orders, windows }: Shape, addressing: Addressing): Node {
  const root = grow(select);
  for (const { path, value } of conditions) follow(root, path, addressing).conditions.push(value);
  for (const { path, value } of firstOfEach(orders)) follow(root, path, addressing).order = value;
  for (const { path, value } of firstOfEach(windows)) follow(root, path, addressing).window = value;
  return root;
}

/** The name under which the relation is in the answer. */
export function nameOf({ relation }: Branch): string {
  return relation.alias ?? relation.name;
}

export function findBranch({ children }: Node, name: string, addressing: Addressing): Branch | undefined {
  const found = children.find((child) => nameOf(child) === name);
  if (found || !addressing.legacyTargetNames) return found;
  const aliased = children.find(({ relation }) => relation.name === name);
  if (aliased) addressing.onLegacyName?.({ name, alias: nameOf(aliased) });
  return aliased;
}

function grow(select: Shape["select"]): Node {
  return {
    columns: select.filter((item) => item.kind === "column"),
    children: select
      .filter((item) => item.kind === "relation")
      .map((relation) => ({ ...grow(relation.select), relation })),
    conditions: [],
    order: [],
    window: null,
  };
}

function follow(node: Node, path: readonly string[], addressing: Addressing): Node {
  const [name, ...rest] = path;
  if (name === undefined) return node;
  const branch = findBranch(node, name, addressing);
  if (!branch) throw notEmbedded(name, findBranch(node, name, { legacyTargetNames: true }));
  return follow(branch, rest, addressing);
}

function firstOfEach<T>(placed: readonly Placed<T>[]): Placed<T>[] {
  const seen = new Set<string>();
  return placed.filter(({ path }) => {
    const key = JSON.stringify(path);
    return !seen.has(key) && seen.add(key);
  });
}

export function notEmbedded(name: string, aliased?: Branch): ApiError {
  return new ApiError(400, "PGRST108", `'${name}' is not an embedded resource in this request`, {
    details: aliased ? "Target names are not allowed in filters if they have an alias" : null,
    hint: aliased
      ? `Change '${name}' to '${nameOf(aliased)}' in filters, orders or limits.`
      : `Verify that '${name}' is included in the 'select' query parameter.`,
  });
}
