import { ApiError } from "#runtime";
import {
  ALL_COLUMNS,
  type FieldReference,
  type OrderTerm,
  type RowCondition,
  type RowRange,
  type RowSelection,
  type SelectedColumn,
  type SelectedRelation,
  type SelectItem,
  type WithEmbedPath,
} from "../intent/intent.ts";

/** A selection as requested: columns, conditions and order of its rows, and the embedded relations. */
export type SelectNode = {
  readonly columns: readonly SelectedColumn[];
  readonly children: readonly EmbedNode[];
  readonly conditions: RowCondition[];
  /** Conditions on groups. */
  readonly having: RowCondition[];
  /** Selects only the first row of rows with equal values in these fields. */
  distinct: readonly FieldReference[];
  order: readonly OrderTerm[];
  range: RowRange | null;
};
export type EmbedNode = SelectNode & { readonly relation: SelectedRelation };

export type EmbedNameRules = {
  /** True if a relation with an alias is also found by its own name. */
  readonly legacyTargetNames: boolean;
  /** Called for each relation found that way. */
  readonly onLegacyName?: (target: LegacyTarget) => void;
};

/** A relation with an alias that was referred to by its own name. */
export type LegacyTarget = { readonly name: string; readonly alias: string };

/** Assigns conditions, orders and ranges to their relations. */
export function buildSelectTree(
  { select, conditions, having = [], distinct = [], orders, ranges }: RowSelection,
  rules: EmbedNameRules,
): SelectNode {
  const root = makeSelectNode(select);
  for (const { path, value } of conditions) findNodeAt(root, path, rules).conditions.push(value);
  for (const { path, value } of having) findNodeAt(root, path, rules).having.push(value);
  for (const { path, value } of firstPerPath(distinct)) findNodeAt(root, path, rules).distinct = value;
  for (const { path, value } of firstPerPath(orders)) findNodeAt(root, path, rules).order = value;
  for (const { path, value } of firstPerPath(ranges)) findNodeAt(root, path, rules).range = value;
  return root;
}

/** The relation's name in the response. */
export function embedName({ relation }: EmbedNode): string {
  return relation.alias ?? relation.name;
}

export function findEmbed({ children }: SelectNode, name: string, rules: EmbedNameRules): EmbedNode | undefined {
  const embed = children.find((child) => embedName(child) === name);
  if (embed || !rules.legacyTargetNames) return embed;
  const aliased = children.find(({ relation }) => relation.name === name);
  if (aliased) rules.onLegacyName?.({ name, alias: embedName(aliased) });
  return aliased;
}

export function makeSelectNode(select: RowSelection["select"]): SelectNode {
  return {
    columns: select.filter((item) => item.kind === "column"),
    children: select
      .filter((item) => item.kind === "relation")
      .map((relation) => ({ ...makeSelectNode(relation.select), relation })),
    conditions: [],
    having: [],
    distinct: [],
    order: [],
    range: null,
  };
}

function findNodeAt(node: SelectNode, path: readonly string[], rules: EmbedNameRules): SelectNode {
  const [name, ...rest] = path;
  if (name === undefined) return node;
  const embed = findEmbed(node, name, rules);
  if (!embed) throw relationNotEmbedded(name, findEmbed(node, name, { legacyTargetNames: true }));
  return findNodeAt(embed, rest, rules);
}

function firstPerPath<T>(placed: readonly WithEmbedPath<T>[]): WithEmbedPath<T>[] {
  const seen = new Set<string>();
  return placed.filter(({ path }) => {
    const key = JSON.stringify(path);
    return !seen.has(key) && seen.add(key);
  });
}

export function relationNotEmbedded(name: string, aliased?: EmbedNode): ApiError {
  return new ApiError("invalid", "PGRST108", `'${name}' is not an embedded resource in this request`, {
    details: aliased ? "Target names are not allowed in filters if they have an alias" : null,
    hint: aliased
      ? `Change '${name}' to '${embedName(aliased)}' in filters, orders or limits.`
      : `Verify that '${name}' is included in the 'select' query parameter.`,
  });
}

/** True if the selection consists of exactly all columns. */
export function selectsAllColumns(select: readonly SelectItem[]): boolean {
  const [only, ...others] = select;
  return (
    (only === undefined ||
      (only.kind === "column" && only.field?.name === ALL_COLUMNS.name && only.aggregate === null)) &&
    others.length === 0
  );
}
