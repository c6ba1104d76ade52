import type { Bounds } from "./diagram-model.ts";
import type { Point } from "./layout.ts";

type PanZoomOptions = {
  /** The element whose content is moved. */
  readonly group: SVGGElement;
  /** Called when the visible part has changed. */
  readonly onChange: () => void;
  /** Called while a box is dragged, with the distance since the last call. */
  readonly onDrag: (id: string, distance: Point) => void;
};

type Gesture = { readonly box: string | null; readonly pointers: Map<number, Point>; hasMoved: boolean };

const MIN_SCALE = 0.05;
const MAX_SCALE = 2.5;
const WHEEL_SPEED = 0.0015;
/** The distance below which a move of the pointer is a click. */
const CLICK_DISTANCE = 4;
const MARGIN = 24;

/** Moves and scales a diagram by mouse, touch and wheel. Changes only one attribute, so that large diagrams move smoothly. */
export class PanZoom {
  readonly #svg: SVGSVGElement;
  readonly #options: PanZoomOptions;
  readonly #listeners = new AbortController();
  #gesture: Gesture | null = null;
  #offset: Point = { x: 0, y: 0 };
  #scale = 1;

  constructor(svg: SVGSVGElement, options: PanZoomOptions) {
    this.#svg = svg;
    this.#options = options;
    const { signal } = this.#listeners;
    svg.addEventListener("wheel", (event) => this.#zoomByWheel(event), { signal, passive: false });
    svg.addEventListener("pointerdown", (event) => this.#begin(event), { signal });
    svg.addEventListener("pointermove", (event) => this.#move(event), { signal });
    for (const end of ["pointerup", "pointercancel"] as const) {
      svg.addEventListener(end, (event) => this.#end(event), { signal });
    }
    // A click at the end of a drag opens nothing.
    svg.addEventListener("click", (event) => this.#suppressClick(event), { signal, capture: true });
    svg.addEventListener("dragstart", (event) => event.preventDefault(), { signal });
  }

  get scale(): number {
    return this.#scale;
  }

  stop(): void {
    this.#listeners.abort();
  }

  /** Returns the visible part of the diagram. */
  visible(): Bounds {
    const { clientWidth, clientHeight } = this.#svg;
    const { x, y } = this.#offset;
    const scale = this.#scale;
    return { x: -x / scale, y: -y / scale, width: clientWidth / scale, height: clientHeight / scale };
  }

  pan(x: number, y: number): void {
    this.#show({ x: this.#offset.x + x, y: this.#offset.y + y }, this.#scale);
  }

  /** Zooms around the middle, or around the given point of the element. */
  zoom(factor: number, at: Point = { x: this.#svg.clientWidth / 2, y: this.#svg.clientHeight / 2 }): void {
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, this.#scale * factor));
    const ratio = scale / this.#scale;
    const { x, y } = this.#offset;
    this.#show({ x: at.x - (at.x - x) * ratio, y: at.y - (at.y - y) * ratio }, scale);
  }

  /** Shows the whole diagram or a part of it, not enlarged, and not smaller than the given scale. */
  fit(bounds: Bounds, least = MIN_SCALE): void {
    const { clientWidth, clientHeight } = this.#svg;
    const [width, height] = [bounds.width + 2 * MARGIN, bounds.height + 2 * MARGIN];
    const scale = Math.max(least, Math.min(1, clientWidth / width, clientHeight / height));
    const offset = (size: number, start: number, length: number) => (size - length * scale) / 2 - start * scale;
    this.#show(
      { x: offset(clientWidth, bounds.x, bounds.width), y: offset(clientHeight, bounds.y, bounds.height) },
      scale,
    );
  }

  /** Moves no further than needed to show a part, such as a box that got the focus. */
  reveal(part: Bounds): void {
    const seen = this.visible();
    const shift = (start: number, length: number, from: number, size: number) =>
      Math.max(0, from - start + MARGIN) || Math.min(0, from + size - start - length - MARGIN);
    const x = shift(part.x, part.width, seen.x, seen.width);
    const y = shift(part.y, part.height, seen.y, seen.height);
    if (x !== 0 || y !== 0) this.pan(x * this.#scale, y * this.#scale);
  }

  #show(offset: Point, scale: number): void {
    this.#offset = offset;
    this.#scale = scale;
    this.#options.group.setAttribute("transform", `translate(${offset.x} ${offset.y}) scale(${scale})`);
    // Names of clusters keep their size on the screen.
    this.#options.group.style.setProperty("--zoom", String(scale));
    this.#options.onChange();
  }

  #positionOf({ clientX, clientY }: MouseEvent): Point {
    const { left, top } = this.#svg.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  #zoomByWheel(event: WheelEvent): void {
    event.preventDefault();
    // A pinch on a touchpad arrives as a wheel event with the control key.
    const speed = event.ctrlKey ? WHEEL_SPEED * 6 : WHEEL_SPEED;
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY;
    this.zoom(Math.exp(-pixels * speed), this.#positionOf(event));
  }

  #begin(event: PointerEvent): void {
    if (event.button !== 0) return;
    const box = event.target instanceof Element ? event.target.closest<SVGElement>("[data-box]") : null;
    this.#gesture ??= { box: box?.dataset.box ?? null, pointers: new Map(), hasMoved: false };
    this.#gesture.pointers.set(event.pointerId, this.#positionOf(event));
  }

  #move(event: PointerEvent): void {
    const gesture = this.#gesture;
    const before = gesture?.pointers.get(event.pointerId);
    if (!gesture || !before) return;
    const now = this.#positionOf(event);
    const distance = { x: now.x - before.x, y: now.y - before.y };
    if (!gesture.hasMoved && Math.hypot(distance.x, distance.y) < CLICK_DISTANCE) return;
    gesture.hasMoved = true;
    this.#svg.setPointerCapture(event.pointerId);
    const [other] = [...gesture.pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    gesture.pointers.set(event.pointerId, now);
    if (other) this.#pinch(before, now, other);
    else if (gesture.box !== null)
      this.#options.onDrag(gesture.box, { x: distance.x / this.#scale, y: distance.y / this.#scale });
    else this.pan(distance.x, distance.y);
  }

  #pinch(before: Point, now: Point, other: Point): void {
    const spread = (point: Point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
    this.zoom(spread(now) / spread(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
    this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  }

  #end(event: PointerEvent): void {
    const gesture = this.#gesture;
    gesture?.pointers.delete(event.pointerId);
    // The click event follows this event.
    if (gesture?.pointers.size === 0) setTimeout(() => this.#forget(gesture));
  }

  #forget(gesture: Gesture): void {
    if (this.#gesture === gesture && gesture.pointers.size === 0) this.#gesture = null;
  }

  #suppressClick(event: MouseEvent): void {
    if (!this.#gesture?.hasMoved) return;
    event.preventDefault();
    event.stopPropagation();
  }
}
