import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export const ROW_HEIGHT = 29;
export const HEADER_HEIGHT = 33;

/** The maximum height. Browsers limit the height of an element: Firefox to 17.8 million pixels, Chrome to 33.5 million. */
const MAX_ELEMENT_HEIGHT = 10_000_000;

export type ScrollGeometry = {
  readonly contentHeight: number;
  readonly viewHeight: number;
};

type ScrollState = {
  /** The pixel of the content that is at the top. */
  readonly position: number;
  readonly scrollTop: number;
};

export function elementHeight({ contentHeight }: ScrollGeometry): number {
  return Math.min(contentHeight, MAX_ELEMENT_HEIGHT);
}

function maxPosition({ contentHeight, viewHeight }: ScrollGeometry): number {
  return Math.max(0, contentHeight - viewHeight);
}

export function scrollTopOf(position: number, geometry: ScrollGeometry): number {
  return position / scaleOf(geometry);
}

/** Returns the pixels of content per pixel of the scrollbar. */
function scaleOf(geometry: ScrollGeometry): number {
  const range = elementHeight(geometry) - geometry.viewHeight;
  return range <= 0 ? 1 : maxPosition(geometry) / range;
}

/**
 * The position after the browser has scrolled the element. A step of the wheel moves the content by as many pixels as the element,
 * whatever the scale; a move of the scrollbar moves it to the place in proportion.
 */
export function positionAfterScroll(
  before: ScrollState,
  scrollTop: number,
  geometry: ScrollGeometry,
  isWheel = false,
): number {
  const scale = scaleOf(geometry);
  const step = scrollTop - before.scrollTop;
  const isStep = scale > 1 && (isWheel || Math.abs(step) <= geometry.viewHeight);
  const position = isStep ? before.position + step : scrollTop * scale;
  return Math.min(Math.max(0, position), maxPosition(geometry));
}

export type GridView = {
  readonly position: number;
  readonly left: number;
  readonly width: number;
  readonly height: number;
};

/** Follows the scrolling and the size of an element that shows `contentHeight` pixels below a header. */
export function useGridScroll(contentHeight: number) {
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<GridView>({ position: 0, left: 0, width: 0, height: 0 });
  const state = useRef({ position: 0, scrollTop: 0, contentHeight, idle: 0, wheel: 0 });
  state.current.contentHeight = contentHeight;
  const scroll = useMemo(() => makeScroll(element, state.current, setView), []);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(scroll.measure);
    observer.observe(element.current!);
    return () => {
      observer.disconnect();
      clearTimeout(state.current.idle);
    };
  }, [scroll]);
  // A new number of rows changes the scale.
  useLayoutEffect(() => scroll.moveTo(state.current.position), [scroll, contentHeight]);
  return { element, view, elementHeight: Math.min(contentHeight, MAX_ELEMENT_HEIGHT), ...scroll };
}

const IDLE_MILLISECONDS = 150;

function geometryOf({ clientHeight }: HTMLDivElement, contentHeight: number): ScrollGeometry {
  return { contentHeight, viewHeight: Math.max(0, clientHeight - HEADER_HEIGHT) };
}

/** Does the work when no scrolling has followed for a while. */
function whenIdle(state: { idle: number }, work: () => void): void {
  clearTimeout(state.idle);
  state.idle = setTimeout(work, IDLE_MILLISECONDS) as unknown as number;
}

function isAtEdge(scrollTop: number, geometry: ScrollGeometry): boolean {
  return scrollTop <= 0 || scrollTop >= elementHeight(geometry) - geometry.viewHeight;
}

/** The pixels per unit of the wheel: pixels, lines, pages. */
const WHEEL_UNITS = [1, 40, 1000];

function makeScroll(
  element: { readonly current: HTMLDivElement | null },
  state: { position: number; scrollTop: number; contentHeight: number; idle: number; wheel: number },
  setView: (view: GridView) => void,
) {
  const geometry = () => geometryOf(element.current!, state.contentHeight);
  const measure = () => {
    const { scrollLeft, clientWidth } = element.current!;
    setView({ position: state.position, left: scrollLeft, width: clientWidth, height: geometry().viewHeight });
  };
  /** Moves the scrollbar to the position; steps of the wheel have moved it out of proportion. */
  const align = () => {
    element.current!.scrollTop = scrollTopOf(state.position, geometry());
    state.scrollTop = element.current!.scrollTop;
  };
  const settleLater = () =>
    whenIdle(state, () => {
      // If the browser has scrolled and its event has not come yet, aligning now would undo that.
      if (element.current?.scrollTop !== state.scrollTop) return;
      state.wheel = 0;
      align();
    });
  const moveTo = (position: number) => {
    state.position = Math.min(Math.max(0, position), maxPosition(geometry()));
    align();
    measure();
  };
  const onScroll = () => {
    const { scrollTop } = element.current!;
    const step = Math.abs(scrollTop - state.scrollTop);
    const isWheel = step <= state.wheel + 1;
    if (isWheel) state.wheel -= step;
    state.position = positionAfterScroll(state, scrollTop, geometry(), isWheel);
    state.scrollTop = scrollTop;
    if (isAtEdge(scrollTop, geometry())) align();
    settleLater();
    measure();
  };
  const moveLeft = (left: number) => {
    element.current!.scrollLeft = left;
    measure();
  };
  /** Adds up the wheel's distance, because the browser scrolls it smoothly, in many steps or in one. */
  const onWheel = ({ deltaY, deltaMode }: WheelEvent) => {
    state.wheel += Math.abs(deltaY) * WHEEL_UNITS[deltaMode]!;
    settleLater();
  };
  return { measure, moveTo, moveLeft, onScroll, onWheel };
}
