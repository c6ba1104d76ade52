import { formatDuration } from "../../components/format.ts";
import type { PlanNode, PlanTree } from "./plan-tree.ts";

/** The plan as lines, each node below its parent. */
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
