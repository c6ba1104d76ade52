import type { Ref } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.ts";
import { navigate } from "../router.ts";
import { texts } from "../texts.ts";
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
  readonly placeOf: PlaceOf;
  readonly onMove: (id: string, distance: Point) => void;
  readonly panZoom: Ref<PanZoom> & { current: PanZoom | null };
};

/** The number of boxes above which only those near the visible part are in the document. */
const MAX_BOXES = 150;
/** The minimum scale at which names of columns are legible. */
const DETAILED_SCALE = 0.4;
const PAN_STEP = 80;
const PANS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [PAN_STEP, 0],
  ArrowRight: [-PAN_STEP, 0],
  ArrowUp: [0, PAN_STEP],
  ArrowDown: [0, -PAN_STEP],
};

type ShownPart = { readonly part: Bounds; readonly isDetailed: boolean };
const EVERYTHING = { part: { x: -1e9, y: -1e9, width: 2e9, height: 2e9 } };

/** The diagram, which users can move and scale; pointing at a table shows its relations. */
export function DiagramView({ model, placeOf, onMove, panZoom }: DiagramViewProps) {
  const { svg, group, shown } = usePanZoom({ model, placeOf, onMove, panZoom });
  const [pointed, setPointed] = useState<string | null>(null);
  const [pointedLink, setPointedLink] = useState<DiagramLink | null>(null);
  const lit = useMemo(() => litParts(model, pointed, pointedLink), [model, pointed, pointedLink]);
  const focus = (id: string | null) => {
    setPointed(id);
    const box = model.boxes.find((each) => each.id === id);
    if (box) panZoom.current!.reveal({ ...placeOf(box.id), width: box.width, height: box.height });
  };
  const press = (event: KeyboardEvent) => {
    const isHandled = moveByKey(event, panZoom.current!, () => boundsOf(model.boxes, placeOf));
    if (isHandled) event.preventDefault();
  };
  const isAll = model.boxes.length <= MAX_BOXES;
  const boxes = isAll ? model.boxes : model.boxes.filter((box) => touches(box, placeOf(box.id), shown.part));
  const visible = new Set(boxes.map(({ id }) => id));
  const links = isAll ? model.links : model.links.filter(({ from, to }) => visible.has(from) || visible.has(to));
  const placed = placeLinks(links, model, placeOf);
  const isSimple = !isAll && !shown.isDetailed;
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
        ${isSimple && html`<path class="diagram-line" d=${placed.map(({ line }) => line).join("")} />`}
        ${single.map((each) => html`<${LinkShape} key=${each.link.id} ...${each} isLit=${lit?.links.has(each.link.id) ?? false} onPoint=${setPointedLink} />`)}
        ${boxes.map((box) => html`<${BoxShape} key=${box.id} box=${box} at=${placeOf(box.id)} isLit=${lit?.boxes.has(box.id) ?? false} isDetailed=${shown.isDetailed} onPoint=${setPointed} onFocus=${focus} onOpen=${openTable} onMove=${onMove} />`)}
      </g>
    </svg>
  `;
}

/** Returns the elements to move, and the part of the diagram to render. */
function usePanZoom({ model, placeOf, onMove, panZoom }: DiagramViewProps) {
  const svg = useRef<SVGSVGElement>(null);
  const group = useRef<SVGGElement>(null);
  const dragged = useRef(onMove);
  dragged.current = onMove;
  const [shown, setShown] = useState<ShownPart>(() => ({ ...EVERYTHING, isDetailed: model.boxes.length <= MAX_BOXES }));
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

function moveByKey(event: KeyboardEvent, panZoom: PanZoom, bounds: () => Bounds): boolean {
  const { key, ctrlKey, metaKey, altKey } = event;
  const pan = PANS[key];
  if (ctrlKey || metaKey || altKey) return false;
  if (pan) panZoom.pan(...pan);
  else if (key === "+" || key === "=") panZoom.zoom(1.25);
  else if (key === "-") panZoom.zoom(0.8);
  else if (key === "0") panZoom.fit(bounds());
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

/** Returns the table or foreign key under the pointer, with all its relations. */
function litParts({ links }: DiagramModel, pointed: string | null, pointedLink: DiagramLink | null) {
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
  const { part } = before;
  const isWithin =
    x >= part.x &&
    y >= part.y &&
    x + width <= part.x + part.width &&
    y + height <= part.y + part.height &&
    part.width <= 6 * width;
  if (isWithin && isDetailed === before.isDetailed) return before;
  return { part: { x: x - width / 2, y: y - height / 2, width: 2 * width, height: 2 * height }, isDetailed };
}

function touches({ width, height }: DiagramBox, { x, y }: Point, part: Bounds): boolean {
  return x < part.x + part.width && x + width > part.x && y < part.y + part.height && y + height > part.y;
}
