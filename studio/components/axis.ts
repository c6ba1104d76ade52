import { linearScale, roundUp } from "./scales.ts";

/** The positions of values along an axis of a chart. */
export type Axis = {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
  readonly format: (value: number) => string;
};

type Range = readonly [start: number, end: number];

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  ...[1, 5, 15, 30].map((count) => count * SECOND),
  ...[1, 5, 15, 30].map((count) => count * MINUTE),
  ...[1, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30, 91, 182, 365, 730, 1826, 3652].map((count) => count * DAY),
];

/** The approximate number of ticks on an axis. */
export const TICKS = 5;
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
/** The format writes years without a comma. */
const PLAIN = new Intl.NumberFormat("en", { maximumSignificantDigits: 6, useGrouping: "min2" });

/** Makes an axis that begins and ends with round numbers. */
export function numberAxis(
  values: Iterable<number>,
  [start, end]: Range,
  { includesZero = false, wanted = TICKS } = {},
): Axis {
  const [least, greatest] = extentOf(values, includesZero);
  const step = roundUp((greatest - least) / wanted);
  const from = Math.floor(least / step) * step;
  const count = Math.ceil((greatest - from) / step - 1e-9);
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((from + index * step).toPrecision(12)));
  return { place: linearScale(from, ticks.at(-1)!, start, end), ticks, format: formatNumber };
}

/** Makes an axis for milliseconds since 1970: from the first to the last value, with ticks at round local times. */
export function timeAxis(values: Iterable<number>, [start, end]: Range, wanted = TICKS): Axis {
  const [from, to] = extentOf(values, false);
  const least = (to - from) / wanted;
  const step = TIME_STEPS.find((each) => each >= least) ?? roundUp(least / DAY) * DAY;
  const shift = new Date(from).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - shift) / step) * step + shift;
  const ticks: number[] = [];
  for (let tick = first; tick <= to; tick += step) ticks.push(tick);
  const format = timeFormat(step);
  return { place: linearScale(from, to, start, end), ticks, format: (time) => format.format(time) };
}

/** Makes an axis for names: the middles of bands of equal width. At most `shown` of them are ticks. */
export function bandAxis(
  names: readonly string[],
  [start, end]: Range,
  shown: number,
): Axis & { readonly width: number } {
  const width = (end - start) / Math.max(1, names.length);
  const every = Math.max(1, Math.ceil(names.length / shown));
  return {
    width,
    place: (index) => start + width * (index + 0.5),
    ticks: [...names.keys()].filter((index) => index % every === 0),
    format: (index) => names[index] ?? "",
  };
}

/** Returns `1950`, `12,000`, `1.2M`, `0.05`. */
export function formatNumber(value: number): string {
  return (Math.abs(value) >= 1_000_000 ? COMPACT : PLAIN).format(value);
}

function timeFormat(step: number): Intl.DateTimeFormat {
  const ofDay = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  if (step < MINUTE) return new Intl.DateTimeFormat("en", { ...ofDay, second: "2-digit" });
  if (step < DAY) return new Intl.DateTimeFormat("en", ofDay);
  if (step < 28 * DAY) return new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
  return new Intl.DateTimeFormat("en", { month: "short", year: "numeric" });
}

function extentOf(values: Iterable<number>, includesZero: boolean): [number, number] {
  let least = includesZero ? 0 : Number.POSITIVE_INFINITY;
  let greatest = includesZero ? 0 : Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < least) least = value;
    if (value > greatest) greatest = value;
  }
  if (least > greatest) return [0, 1];
  return least === greatest ? [least, least + (Math.abs(least) || 1)] : [least, greatest];
}
