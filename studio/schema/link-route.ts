import { type LinkEnd, linkPath } from "./diagram-model.ts";

type Rectangle = { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

const CLEARANCE = 12;
const SAMPLES = 24;
const MAX_BEND = 40;

/** Returns the line of a link around the boxes that would hide it. The boxes that it joins are no obstacles. */
export function routeLink(from: LinkEnd, to: LinkEnd, obstacles: readonly Rectangle[]): string {
  if (from.side === to.side) return linkPath(from, to);
  const [start, end] = from.x < to.x ? [from, to] : [to, from];
  const between = obstacles.filter(({ x, width }) => x < end.x && x + width > start.x);
  const hit = between.filter((box) => isCrossed(box, start, end));
  if (hit.length === 0) return linkPath(from, to);
  const first = Math.min(...hit.map(({ x }) => x)) - CLEARANCE;
  const last = Math.max(...hit.map(({ x, width }) => x + width)) + CLEARANCE;
  if (first <= start.x || last >= end.x) return linkPath(from, to);
  const passed = between.filter(({ x, width }) => x < last && x + width > first);
  const height = freeHeight(passed, (start.y + end.y) / 2);
  return `M${start.x} ${start.y}${curve(start.x, start.y, first, height)}H${last}${curve(last, height, end.x, end.y)}`;
}

/** Returns the free height above or below boxes that is nearest to the wanted one. */
function freeHeight(boxes: readonly Rectangle[], wanted: number): number {
  const candidates = boxes.flatMap(({ y, height }) => [y - CLEARANCE, y + height + CLEARANCE]);
  const free = candidates.filter((at) => boxes.every(({ y, height }) => at < y || at > y + height));
  return free.reduce((best, at) => (Math.abs(at - wanted) < Math.abs(best - wanted) ? at : best));
}

function curve(x: number, y: number, toX: number, toY: number): string {
  const bend = Math.min(MAX_BEND, Math.abs(toX - x) / 2);
  return `C${x + bend} ${y} ${toX - bend} ${toY} ${toX} ${toY}`;
}

/** True if the curve of `linkPath` crosses the box. */
function isCrossed({ x, y, width, height }: Rectangle, start: LinkEnd, end: LinkEnd): boolean {
  const middle = (start.x + end.x) / 2;
  for (let step = 1; step < SAMPLES; step++) {
    const t = step / SAMPLES;
    const rest = 1 - t;
    const atX = rest ** 3 * start.x + 3 * rest * t * middle + t ** 3 * end.x;
    const atY = (rest ** 3 + 3 * rest ** 2 * t) * start.y + (3 * rest * t ** 2 + t ** 3) * end.y;
    if (atX > x && atX < x + width && atY > y - 4 && atY < y + height + 4) return true;
  }
  return false;
}
