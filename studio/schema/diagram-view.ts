import type { Ref } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.ts";
import { navigate } from "../router.ts";
import { texts } from "../texts.ts";
import { ClusterButton, ClusterFrame } from "./cluster-shapes.ts";
import type { Cluster } from "./clusters.ts";
import {
  type Bounds,
  boundsOf,
  type DiagramBox,
  type DiagramLink,
  type DiagramModel,
  linkEnds,
  linkPath,
} from "./diagram-model.ts";
import { BoxShape, type LinkProps, LinkShape } from "./diagram-shapes.ts";
import type { Point } from "./layout.ts";
import { routeLink } from "./link-route.ts";
import { pathToTable } from "./objects.ts";
import { PanZoom } from "./pan-zoom.ts";

export type PlaceOf = (id: string) => Point;

type DiagramViewProps = {
  readonly model: DiagramModel;
  readonly clusters: readonly Cluster[];
  /** The tables that a search has found. */
  readonly found: readonly string[];
  readonly placeOf: PlaceOf;
  readonly onMove: (id: string, distance: Point) => void;
  readonly panZoom: Ref<PanZoom> & { current: PanZoom | null };
};

/** The number of boxes above which only those near the visible part are in the document. */
const MAX_BOXES = 150;
/** The minimum scale at which names of columns are legible. */
const DETAILED_SCALE = 0.4;
/** The minimum scale at which names of tables are legible: below it, a large diagram shows its clusters. */
const LEGIBLE_SCALE = 0.5;
const PAN_STEP = 80;
const PANS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [PAN_STEP, 0],
  ArrowRight: [-PAN_STEP, 0],
  ArrowUp: [0, PAN_STEP],
  ArrowDown: [0, -PAN_STEP],
};

type ShownPart = { readonly part: Bounds; readonly isDetailed: boolean; readonly isLegible: boolean };
const EVERYTHING = { part: { x: -1e9, y: -1e9, width: 2e9, height: 2e9 } };

/** The diagram, which users can move and scale; pointing at a table shows its relations. */
export function DiagramView(props: DiagramViewProps) {
  const { model, clusters, found, placeOf, onMove, panZoom } = props;
  const { svg, group, shown } = usePanZoom(props);
  const [pointed, setPointed] = useState<string | null>(null);
  const [pointedLink, setPointedLink] = useState<DiagramLink | null>(null);
  const lit = useMemo(() => litParts(model, pointed, pointedLink, found), [model, pointed, pointedLink, found]);
  const focus = (id: string | null) => {
    setPointed(id);
    const box = model.boxes.find((each) => each.id === id);
    if (box) panZoom.current!.reveal({ ...placeOf(box.id), width: box.width, height: box.height });
  };
  const zoomToLit = () => {
    const boxes = model.boxes.filter(({ id }) => lit?.boxes.has(id));
    if (boxes.length > 0) panZoom.current!.fit(boundsOf(boxes, placeOf));
  };
  // The button of the cluster disappears, and its focus goes to the diagram.
  const open = (bounds: Bounds) => panZoom.current!.fit(bounds, LEGIBLE_SCALE);
  const press = (event: KeyboardEvent) => {
    const isHandled = moveByKey(event, panZoom.current!, () => boundsOf(model.boxes, placeOf), zoomToLit);
    if (isHandled) event.preventDefault();
  };
  const { boxes, links, isAll } = visibleParts(model, placeOf, shown.part);
  const placed = placeLinks(links, model, placeOf);
  const isOverview = clusters.length > 0 && !shown.isLegible;
  useFocus(svg, isOverview, () => setPointed(null));
  const isSimple = isOverview || (!isAll && !shown.isDetailed);
  const single = isSimple ? placed.filter(({ link }) => lit?.links.has(link.id)) : placed;
  return html`
    <svg
      ref=${svg}
      class=${`diagram ${lit ? "has-lit" : ""} ${shown.isDetailed ? "" : "small"}`}
      role="group"
      aria-label=${texts.schema.diagramLabel(model.boxes.length, model.links.length)}
      aria-describedby="diagram-keys"
      tabindex="0"
      onKeyDown=${press}
    >
      <g ref=${group}>
        ${!isOverview && placeClusters(clusters, model, placeOf).map(({ bounds }, index) => html`<${ClusterFrame} key=${`cluster ${index}`} bounds=${bounds} />`)}
        ${isSimple && html`<path class="diagram-line" d=${placed.map(({ line }) => line).join("")} />`}
        ${single.map((each) => html`<${LinkShape} key=${each.link.id} ...${each} isLit=${lit?.links.has(each.link.id) ?? false} onPoint=${setPointedLink} />`)}
        ${isOverview && html`<${Overview} boxes=${boxes} found=${found} placeOf=${placeOf} />`}
        ${isOverview && placeClusters(clusters, model, placeOf).map((each) => html`<${ClusterButton} key=${each.title} ...${each} onOpen=${() => open(each.bounds)} />`)}
        ${!isOverview && boxes.map((box) => html`<${BoxShape} key=${box.id} box=${box} at=${placeOf(box.id)} isLit=${lit?.boxes.has(box.id) ?? false} isDetailed=${shown.isDetailed} onPoint=${setPointed} onFocus=${focus} onOpen=${openTable} onMove=${onMove} />`)}
      </g>
    </svg>
  `;
}

/** Keeps the focus in the diagram when the table or the cluster that has it disappears. */
function useFocus(svg: { readonly current: SVGSVGElement | null }, isOverview: boolean, onOverview: () => void) {
  const hadFocus = svg.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (isOverview) onOverview();
    if (hadFocus && !svg.current!.contains(document.activeElement)) svg.current!.focus();
  }, [isOverview]);
}

/** Returns all parts of a small diagram, and those of a large one that are visible. */
function visibleParts(model: DiagramModel, placeOf: PlaceOf, part: Bounds): DiagramModel & { readonly isAll: boolean } {
  if (model.boxes.length <= MAX_BOXES) return { ...model, isAll: true };
  const boxes = model.boxes.filter((box) => touches(box, placeOf(box.id), part));
  const visible = new Set(boxes.map(({ id }) => id));
  const links = model.links.filter(({ from, to }) => visible.has(from) || visible.has(to));
  return { boxes, links, isAll: false };
}

type OverviewProps = Pick<DiagramViewProps, "found" | "placeOf"> & { readonly boxes: readonly DiagramBox[] };

/** The outlines of tables whose names would be too small to read. */
function Overview({ boxes, found, placeOf }: OverviewProps) {
  const outline = (box: DiagramBox) => {
    const { x, y } = placeOf(box.id);
    return `M${x} ${y}h${box.width}v${box.height}h${-box.width}z`;
  };
  return html`
    <path class="diagram-outlines" d=${boxes.map(outline).join("")} />
    <path class="diagram-outlines found" d=${boxes
      .filter(({ id }) => found.includes(id))
      .map(outline)
      .join("")} />
  `;
}

/** Returns the names, sizes and places of clusters. */
function placeClusters(clusters: readonly Cluster[], { boxes }: DiagramModel, placeOf: PlaceOf) {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  return clusters.map(({ center, ids }) => ({
    title: center === null ? texts.schema.unrelated : byId.get(center)!.title,
    count: ids.length,
    bounds: boundsOf(
      ids.map((id) => byId.get(id)!),
      placeOf,
    ),
  }));
}

/** Returns the elements to move, and the part of the diagram to render. */
function usePanZoom({ model, placeOf, onMove, panZoom }: DiagramViewProps) {
  const svg = useRef<SVGSVGElement>(null);
  const group = useRef<SVGGElement>(null);
  const dragged = useRef(onMove);
  dragged.current = onMove;
  const [shown, setShown] = useState<ShownPart>(() => {
    const isDetailed = model.boxes.length <= MAX_BOXES;
    return { ...EVERYTHING, isDetailed, isLegible: isDetailed };
  });
  useEffect(() => {
    const moved = new PanZoom(svg.current!, {
      group: group.current!,
      onChange: () => setShown((before) => nextPart(before, moved)),
      onDrag: (id, distance) => dragged.current(id, distance),
    });
    panZoom.current = moved;
    return () => moved.stop();
  }, []);
  // A catalogue that is read again may differ in numbers of rows only.
  const shape = model.boxes.map(({ id, width, height }) => [id, width, height]).join();
  useEffect(() => panZoom.current!.fit(boundsOf(model.boxes, placeOf)), [shape]);
  return { svg, group, shown };
}

function moveByKey(event: KeyboardEvent, panZoom: PanZoom, bounds: () => Bounds, zoomToLit: () => void): boolean {
  const { key, ctrlKey, metaKey, altKey } = event;
  const pan = PANS[key];
  if (ctrlKey || metaKey || altKey) return false;
  if (pan) panZoom.pan(...pan);
  else if (key === "+" || key === "=") panZoom.zoom(1.25);
  else if (key === "-") panZoom.zoom(0.8);
  else if (key === "0") panZoom.fit(bounds());
  else if (key.toLowerCase() === "z") zoomToLit();
  else return false;
  return true;
}

/** A diagram without pointer actions: for print and files. */
export function StaticDiagram({ model, placeOf }: Pick<DiagramViewProps, "model" | "placeOf">) {
  const { x, y, width, height } = boundsOf(model.boxes, placeOf);
  const [outerWidth, outerHeight] = [width + 120, height + 40];
  return html`
    <svg class="diagram" viewBox=${`${x - 20} ${y - 20} ${outerWidth} ${outerHeight}`} width=${outerWidth} height=${outerHeight}>
      ${placeLinks(model.links, model, placeOf).map((each) => html`<${LinkShape} key=${each.link.id} ...${each} isLit=${false} />`)}
      ${model.boxes.map((box) => html`<${BoxShape} key=${box.id} box=${box} at=${placeOf(box.id)} isLit=${false} isDetailed />`)}
    </svg>
  `;
}

/** Returns the ends of links and the lines between them; unless there are too many boxes, lines go around them. */
function placeLinks(links: readonly DiagramLink[], { boxes }: DiagramModel, placeOf: PlaceOf): PlacedLink[] {
  const placed = new Map(boxes.map((box) => [box.id, { box, at: placeOf(box.id) }]));
  const rectangles = [...placed].map(([id, { box, at }]) => ({ id, ...at, width: box.width, height: box.height }));
  return links.map((link) => {
    const ends = linkEnds(link, placed.get(link.from)!, placed.get(link.to)!);
    if (boxes.length > MAX_BOXES) return { link, ends, line: linkPath(ends.from, ends.to) };
    const obstacles = rectangles.filter(({ id }) => id !== link.from && id !== link.to);
    return { link, ends, line: routeLink(ends.from, ends.to, obstacles) };
  });
}

type PlacedLink = Pick<LinkProps, "link" | "ends" | "line">;

function openTable({ table }: DiagramBox): void {
  navigate(pathToTable(table));
}

/** Returns the table or foreign key under the pointer, or the only table that was found, with all relations; or all that were found. */
function litParts(
  { links }: DiagramModel,
  pointedAt: string | null,
  pointedLink: DiagramLink | null,
  found: readonly string[],
) {
  if (pointedAt === null && pointedLink === null && found.length > 1)
    return { links: new Set<string>(), boxes: new Set(found) };
  const pointed = pointedAt ?? (pointedLink === null ? found[0] : null) ?? null;
  if (pointed === null && pointedLink === null) return null;
  const lit = pointedLink ? [pointedLink] : links.filter(({ from, to }) => from === pointed || to === pointed);
  return {
    links: new Set(lit.map(({ id }) => id)),
    boxes: new Set([...(pointed === null ? [] : [pointed]), ...lit.flatMap(({ from, to }) => [from, to])]),
  };
}

/** Returns the visible part with half a screen more on each side, so that not each step renders it again. */
function nextPart(before: ShownPart, panZoom: PanZoom): ShownPart {
  const { x, y, width, height } = panZoom.visible();
  const isDetailed = panZoom.scale >= DETAILED_SCALE;
  const isLegible = panZoom.scale >= LEGIBLE_SCALE;
  const { part } = before;
  const isWithin =
    x >= part.x &&
    y >= part.y &&
    x + width <= part.x + part.width &&
    y + height <= part.y + part.height &&
    part.width <= 6 * width;
  if (isWithin && isDetailed === before.isDetailed && isLegible === before.isLegible) return before;
  return { part: { x: x - width / 2, y: y - height / 2, width: 2 * width, height: 2 * height }, isDetailed, isLegible };
}

function touches({ width, height }: DiagramBox, { x, y }: Point, part: Bounds): boolean {
  return x < part.x + part.width && x + width > part.x && y < part.y + part.height && y + height > part.y;
}
