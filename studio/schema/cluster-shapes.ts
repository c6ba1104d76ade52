import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { Bounds } from "./diagram-model.ts";

type ClusterProps = {
  /** The name of its central table. */
  readonly title: string;
  readonly count: number;
  /** The rectangle around its tables. */
  readonly bounds: Bounds;
};

const MARGIN = 18;
/** The width of a character relative to the font size. */
const CHARACTER_RATIO = 0.6;

/** The frame of a cluster, whose tables are shown. */
export function ClusterFrame({ bounds: { x, y, width, height } }: Pick<ClusterProps, "bounds">) {
  return html`
    <rect class="diagram-cluster" x=${x - MARGIN} y=${y - MARGIN} width=${width + 2 * MARGIN} height=${height + 2 * MARGIN} rx="12" />
  `;
}

/** A cluster of a diagram whose tables are too small to read: its name keeps its size on the screen, and a click enlarges it. */
export function ClusterButton({ title, count, bounds, onOpen }: ClusterProps & { readonly onOpen: () => void }) {
  const [x, y] = [bounds.x + bounds.width / 2, bounds.y + bounds.height / 2];
  const amount = texts.schema.tableCount(count);
  const longest = Math.max(title.length, amount.length);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onOpen();
  };
  return html`
    <g class="diagram-cluster-button" role="button" tabindex="0" aria-label=${`${title} ${amount}`} onClick=${onOpen} onKeyDown=${press}>
      <${ClusterFrame} bounds=${bounds} />
      <text x=${x} y=${y} text-anchor="middle" style=${{ "--widest": `${(bounds.width + 2 * MARGIN) / (longest * CHARACTER_RATIO)}px` }}>
        <tspan class="diagram-title" x=${x}>${title}</tspan>${" "}
        <tspan x=${x} dy="1.2em">${amount}</tspan>
      </text>
    </g>
  `;
}
