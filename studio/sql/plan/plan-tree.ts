import type { ExplainedNode, StatementPlan } from "#operations/admin-types";
import { formatDuration } from "../../texts/format.ts";
export type PlanNode = {
  readonly id: number;
  /** For example `Hash Join`, `Parallel Seq Scan`, `Insert`. */
  readonly title: string;
  /** The object that the node reads: `on films f`, `using films_pkey on films`. */
  readonly subject: string | null;
  /** The estimate for all loops together. */
  readonly estimatedRows: number;
  /** Null without analyze. */
  readonly rows: number | null;
  readonly loops: number | null;
  readonly cost: number;
  /** The time including all nodes below; null without analyze. */
  readonly milliseconds: number | null;
  readonly ownMilliseconds: number | null;
  /** The node's own part of the time, or of the cost without analyze: from 0 to 1. */
  readonly share: number;
  readonly isSlowest: boolean;
  /** The factor by which there were more rows (positive) or fewer rows (negative) than estimated; null if the estimate was close. */
  readonly misestimate: number | null;
  readonly details: readonly PlanDetail[];
  readonly children: readonly PlanNode[];
};

type PlanDetail = { readonly name: string; readonly value: string };

type PlanTree = {
  readonly root: PlanNode;
  readonly isAnalyzed: boolean;
  readonly planningMilliseconds: number | null;
  readonly executionMilliseconds: number | null;
};

type NodeContext = {
  /** The number of processes that share the node's loops. */
  readonly processes: number;
  /** True if a node above may read only a part of the rows. */
  readonly mayStopEarly: boolean;
};

type MutableNode = { -readonly [Name in keyof PlanNode]: PlanNode[Name] } & {
  children: MutableNode[];
  /** The name of the `with` query that the node computes: the time belongs to the nodes that read it, not to the parent. */
  readonly cte: string | null;
  readonly readsCte: string | null;
};

/** The factor from which an estimate is marked as wrong, if enough rows are concerned. */
const WRONG_FACTOR = 10;
const MIN_MARKED_ROWS = 100;
/** The minimum share of a slow node; a plan of one node has none. */
const MIN_SLOW_SHARE = 0.1;

/** Properties that are shown elsewhere, or that only matter to Postgres. */
const HIDDEN = new Set([
  ...["Node Type", "Plans", "Plan Rows", "Actual Rows", "Actual Loops", "Actual Total Time", "Actual Startup Time"],
  ...["Startup Cost", "Total Cost", "Plan Width", "Parallel Aware", "Async Capable", "Parent Relationship", "Disabled"],
]);

export function readPlan(statement: StatementPlan): PlanTree {
  const { Plan: top } = statement;
  let lastId = 0;
  const read = (node: ExplainedNode, context: NodeContext): MutableNode => {
    const id = lastId++;
    const children = (node.Plans ?? []).map((child) => read(child, contextBelow(node, child, context)));
    return toNode(node, { id, context, children });
  };
  const root = read(top, { processes: 1, mayStopEarly: false });
  const isAnalyzed = top["Actual Loops"] !== undefined;
  deductCteTimes([...planNodes(root)] as MutableNode[]);
  markShares(root);
  return {
    root,
    isAnalyzed,
    planningMilliseconds: statement["Planning Time"] ?? null,
    executionMilliseconds: statement["Execution Time"] ?? null,
  };
}

/** Returns all nodes, each before its children. */
export function* planNodes(node: PlanNode): Generator<PlanNode> {
  yield node;
  for (const child of node.children) yield* planNodes(child);
}

function contextBelow(
  parent: ExplainedNode,
  child: ExplainedNode,
  { processes, mayStopEarly }: NodeContext,
): NodeContext {
  const isInner = child["Parent Relationship"] === "Inner";
  const stopsInner =
    isInner && /^(Semi|Anti)$/.test(String(parent["Join Type"] ?? "")) && parent["Node Type"] === "Nested Loop";
  const launched = parent["Workers Launched"];
  return {
    // The count includes the leader, which works too.
    processes: launched === undefined ? processes : launched + 1,
    mayStopEarly:
      stopsInner ||
      parent["Node Type"] === "Limit" ||
      parent["Node Type"] === "Merge Join" ||
      (mayStopEarly && !isBlocking(parent)),
  };
}

/** True if the node reads all its rows before it returns the first. */
function isBlocking({ "Node Type": type }: ExplainedNode): boolean {
  return /^(Sort|Hash|Aggregate|Materialize|ModifyTable)$/.test(type);
}

type NodeParts = { readonly id: number; readonly context: NodeContext; readonly children: MutableNode[] };

function toNode(node: ExplainedNode, { id, context, children }: NodeParts): MutableNode {
  const loops = node["Actual Loops"] ?? null;
  const isRun = loops !== null && node["Actual Rows"] !== undefined;
  const time = node["Actual Total Time"];
  const milliseconds =
    time === undefined || loops === null ? null : (time * loops) / (loops > 1 ? context.processes : 1);
  const spentBelow = children.reduce((sum, child) => sum + (child.cte === null ? (child.milliseconds ?? 0) : 0), 0);
  const rows = isRun ? Math.round(node["Actual Rows"]! * loops) : null;
  const estimatedRows = Math.round(node["Plan Rows"] * (loops ?? 1));
  return {
    id,
    title: titleOf(node),
    subject: subjectOf(node),
    estimatedRows,
    rows,
    loops,
    cost: node["Total Cost"],
    milliseconds,
    ownMilliseconds: milliseconds === null ? null : Math.max(0, milliseconds - spentBelow),
    share: 0,
    isSlowest: false,
    misestimate: loops === 0 ? null : misestimateOf(estimatedRows, rows, context),
    details: detailsOf(node),
    children,
    cte: /^CTE (.*)$/s.exec(String(node["Subplan Name"] ?? ""))?.[1] ?? null,
    readsCte: node["Node Type"] === "CTE Scan" ? String(node["CTE Name"]) : null,
  };
}

function misestimateOf(estimated: number, rows: number | null, { mayStopEarly }: NodeContext): number | null {
  if (rows === null || Math.max(estimated, rows) < MIN_MARKED_ROWS) return null;
  const factor = Math.max(rows, 1) / Math.max(estimated, 1);
  if (factor >= WRONG_FACTOR) return factor;
  return 1 / factor >= WRONG_FACTOR && !mayStopEarly ? -1 / factor : null;
}

/** Deducts the time of a `with` query from the nodes that read it: the first of these waits for its rows. */
function deductCteTimes(nodes: readonly MutableNode[]): void {
  for (const { cte, milliseconds } of nodes) {
    let rest = cte === null ? 0 : (milliseconds ?? 0);
    for (const reader of nodes) {
      if (cte === null || reader.readsCte !== cte || reader.ownMilliseconds === null) continue;
      const deducted = Math.min(rest, reader.ownMilliseconds);
      reader.ownMilliseconds -= deducted;
      rest -= deducted;
    }
  }
}

/** Sets each node's share of the whole time, or of the whole cost if no times were measured. */
function markShares(root: MutableNode): void {
  const ownOf = (node: PlanNode): number =>
    node.ownMilliseconds ?? Math.max(0, node.cost - node.children.reduce((sum, child) => sum + child.cost, 0));
  const nodes = [...planNodes(root)] as MutableNode[];
  const own = new Map(nodes.map((node) => [node, ownOf(node)]));
  const total = [...own.values()].reduce((sum, each) => sum + each, 0);
  if (total === 0) return;
  for (const [node, spent] of own) node.share = spent / total;
  const slowest = nodes.reduce((worst, node) => (node.share > worst.share ? node : worst));
  slowest.isSlowest = nodes.length > 1 && slowest.share >= MIN_SLOW_SHARE;
}

function titleOf(node: ExplainedNode): string {
  const {
    "Node Type": type,
    "Parallel Aware": isParallel,
    "Join Type": join,
    Operation: operation,
    Strategy: strategy,
  } = node;
  const parallel = isParallel === true ? "Parallel " : "";
  if (type === "ModifyTable") return String(operation ?? type);
  if (type === "Aggregate" && strategy === "Hashed") return `${parallel}Hash Aggregate`;
  if (type === "Aggregate" && strategy === "Sorted") return `${parallel}Group Aggregate`;
  if (join !== undefined && join !== "Inner") return `${parallel}${type.replace(/ ?Join$/, "")} ${join} Join`;
  return `${parallel}${type}${type === "Nested Loop" ? " Join" : ""}`;
}

function subjectOf(node: ExplainedNode): string | null {
  const { "Relation Name": relation, "Index Name": index, Alias: alias } = node;
  const name = relation ?? node["CTE Name"] ?? node["Function Name"] ?? node["Subplan Name"];
  const using = index === undefined ? "" : `using ${String(index)}`;
  if (name === undefined) return using || null;
  const suffix = alias !== undefined && alias !== name ? ` ${String(alias)}` : "";
  return `${using}${using === "" ? "" : " "}on ${String(name)}${suffix}`;
}

function detailsOf(node: ExplainedNode): PlanDetail[] {
  return Object.entries(node).flatMap(([name, value]) => {
    if (HIDDEN.has(name) || value === 0 || value === false || value === null) return [];
    return [{ name, value: textOf(value) }];
  });
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Writes the plan as lines, each node below its parent. */
export function writePlan({ root, planningMilliseconds, executionMilliseconds }: PlanTree): string {
  const lines = writeNode(root, 0);
  if (planningMilliseconds !== null) lines.push(`Planning Time: ${planningMilliseconds} ms`);
  if (executionMilliseconds !== null) lines.push(`Execution Time: ${executionMilliseconds} ms`);
  return lines.join("\n");
}

function writeNode(node: PlanNode, depth: number): string[] {
  const indent = "      ".repeat(Math.max(0, depth - 1)) + (depth > 0 ? "  ->  " : "");
  const below = " ".repeat(depth * 6 + 2);
  const { title, subject, cost, estimatedRows, rows, loops, milliseconds } = node;
  const actual =
    loops === null
      ? ""
      : loops === 0
        ? " (never executed)"
        : ` (actual rows=${rows} loops=${loops}${milliseconds === null ? "" : ` time=${formatDuration(milliseconds)}`})`;
  return [
    `${indent}${title}${subject === null ? "" : ` ${subject}`}  (cost=${cost} rows=${estimatedRows})${actual}`,
    ...node.details.map(({ name, value }) => `${below}${name}: ${value}`),
    ...node.children.flatMap((child) => writeNode(child, depth + 1)),
  ];
}
