import { useMemo, useState } from "preact/hooks";
import type { StatementPlan } from "#operations/admin-types";
import { CodeBlock } from "../../components/code-block.ts";
import { html } from "../../html.ts";
import { formatDuration, formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts.ts";
import { layOutPlan, NODE_HEIGHT, NODE_WIDTH, type PlacedNode, type PlanEdge, type PlanLayout } from "./plan-layout.ts";
import { type PlanNode, planNodes, readPlan, writePlan } from "./plan-tree.ts";

/** A plan as a picture; a click on a node shows all its properties. */
export function PlanPicture({ statement }: { readonly statement: StatementPlan }) {
  const plan = useMemo(() => readPlan(statement), [statement]);
  const layout = useMemo(() => layOutPlan(plan.root), [plan]);
  const initial = useMemo(() => [...planNodes(plan.root)].find(({ isSlowest }) => isSlowest) ?? plan.root, [plan]);
  const [chosen, setChosen] = useState<PlanNode | null>(null);
  const selected = chosen ?? initial;
  const { planningMilliseconds: planning, executionMilliseconds: execution } = plan;
  return html`
    <div class="plan">
      <div class="plan-picture" role="region" aria-label=${texts.sql.planPicture} tabindex="0">
        <p class="quiet plan-summary">
          ${execution !== null && texts.sql.planTotal(formatDuration(planning ?? 0), formatDuration(execution))} ${texts.sql.planLegend}
        </p>
        <${PlanCanvas} layout=${layout} selected=${selected} onSelect=${setChosen} />
      </div>
      <${NodeDetails} node=${selected} />
    </div>
  `;
}

export function PlanText({ statement }: { readonly statement: StatementPlan }) {
  const text = useMemo(() => writePlan(readPlan(statement)), [statement]);
  return html`<div class="plan-text"><${CodeBlock} text=${text} label=${texts.sql.plan} /></div>`;
}

type CanvasProps = {
  readonly layout: PlanLayout;
  readonly selected: PlanNode;
  readonly onSelect: (node: PlanNode) => void;
};

function PlanCanvas({ layout, selected, onSelect }: CanvasProps) {
  const { nodes, edges, width, height } = layout;
  return html`
    <div class="plan-canvas" role="group" aria-label=${texts.sql.planNodes} style=${{ width: `${width}px`, height: `${height}px` }}>
      <svg width=${width} height=${height} aria-hidden="true">
        ${edges.map((edge) => html`<path key=${edge.from.node.id} class="plan-edge" stroke-width=${edge.width} d=${curveOf(edge)} />`)}
      </svg>
      ${nodes.map((placed) => html`<${NodeBox} key=${placed.node.id} placed=${placed} isSelected=${placed.node === selected} onSelect=${onSelect} />`)}
    </div>
  `;
}

function curveOf({ from, to }: PlanEdge): string {
  const [x1, y1] = [from.x + NODE_WIDTH / 2, from.y];
  const [x2, y2] = [to.x + NODE_WIDTH / 2, to.y + NODE_HEIGHT];
  const middle = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
}

type NodeBoxProps = {
  readonly placed: PlacedNode;
  readonly isSelected: boolean;
  readonly onSelect: (node: PlanNode) => void;
};

function NodeBox({ placed: { node, x, y }, isSelected, onSelect }: NodeBoxProps) {
  const { title, subject, share, isSlowest, misestimate, ownMilliseconds } = node;
  const marks = [isSlowest ? "slowest" : "", misestimate === null ? "" : "misestimated"].join(" ").trim();
  return html`
    <button
      type="button"
      class=${`plan-node ${marks}`}
      aria-pressed=${isSelected}
      style=${{ left: `${x}px`, top: `${y}px`, width: `${NODE_WIDTH}px`, height: `${NODE_HEIGHT}px` }}
      onClick=${() => onSelect(node)}
    >
      <span class="plan-node-title">
        <strong>${title}</strong>${isSlowest && html`<span class="badge danger">${texts.sql.planSlowest}</span>`}
      </span>
      <span class="plan-node-subject">${subject ?? ""}</span>
      <span class="plan-node-facts">
        <span>${rowsText(node)}</span>
        <span>${ownMilliseconds === null ? "" : formatDuration(ownMilliseconds)}</span>
      </span>
      ${misestimate !== null && html`<span class="plan-node-estimate">${misestimateText(misestimate)}</span>`}
      <span class="plan-node-share" style=${{ width: `${(share * 100).toFixed(1)}%` }}></span>
    </button>
  `;
}

function rowsText({ rows, loops, estimatedRows }: PlanNode): string {
  if (loops === 0) return texts.sql.planNotRun;
  if (rows === null) return texts.sql.planEstimated(formatNumber(estimatedRows));
  return texts.sql.planRows(formatNumber(rows));
}

function misestimateText(misestimate: number): string {
  const factor = formatNumber(Math.abs(misestimate));
  return misestimate > 0 ? texts.sql.planMore(factor) : texts.sql.planFewer(factor);
}

function NodeDetails({ node }: { readonly node: PlanNode }) {
  const names = texts.sql.planFacts;
  const facts: readonly (readonly [string, string | null])[] = [
    [names.own, node.ownMilliseconds === null ? null : formatDuration(node.ownMilliseconds)],
    [names.total, node.milliseconds === null ? null : formatDuration(node.milliseconds)],
    [names.cost, formatNumber(node.cost)],
    [names.rows, node.rows === null ? null : formatNumber(node.rows)],
    [names.estimated, formatNumber(node.estimatedRows)],
    [names.loops, node.loops === null ? null : formatNumber(node.loops)],
    ...node.details.map(({ name, value }) => [name, value] as const),
  ];
  return html`
    <section class="plan-details" aria-label=${texts.sql.planDetails} tabindex="0">
      <h2>${node.title}</h2>
      ${node.subject && html`<p class="quiet">${node.subject}</p>`}
      <dl>
        ${facts
          .filter(([, value]) => value !== null)
          .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
      </dl>
    </section>
  `;
}
