import { render } from "preact";
import { saveFile } from "../components/save-file.ts";
import { html } from "../html.ts";
import type { DiagramModel } from "./diagram-model.ts";
import { type PlaceOf, StaticDiagram } from "./diagram-view.ts";

/** The colours of the light scheme: the file has no other styles. */
const STYLES = `
  text { font-family: system-ui, sans-serif; fill: #1a202b }
  .diagram-title { font-weight: 600 }
  .diagram-rows { font-size: 12px }
  .diagram-column.key { font-weight: 600 }
  .diagram-mark { font-size: 9px; fill: #566072 }
  .diagram-type { font: 11px ui-monospace, monospace; fill: #566072 }
  .diagram-box { fill: #fff; stroke: #8b94a3 }
  .diagram-rule { stroke: #dfe3e9 }
  .diagram-line { fill: none; stroke: #566072 }
  .diagram-reach { display: none }`;

export function downloadDiagram(model: DiagramModel, placeOf: PlaceOf, name: string): void {
  saveFile(`${name}.svg`, new Blob([diagramFile(model, placeOf)], { type: "image/svg+xml" }));
}

/** The diagram as the text of an SVG file, which needs nothing else. */
function diagramFile(model: DiagramModel, placeOf: PlaceOf): string {
  const holder = document.createElement("div");
  render(html`<${StaticDiagram} model=${model} placeOf=${placeOf} />`, holder);
  const svg = holder.querySelector("svg")!;
  // Links would lead to pages of this service.
  for (const link of svg.querySelectorAll("a")) link.removeAttribute("href");
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = STYLES;
  svg.prepend(style);
  return new XMLSerializer().serializeToString(svg);
}
