import { type Axis, bandAxis, formatNumber, numberAxis, TICKS, timeAxis } from "../../components/axis.ts";
import { useWidth } from "../../components/use-width.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import type { ChartData, ResultSeries } from "./chart-data.ts";

const MIN_WIDTH = 260;
const HEIGHT = 360;
const LEFT = 72;
const BOTTOM = 44;
const TOP = 12;
const RIGHT = 16;
const CHARACTER = 7;
const BAR_SHARE = 0.8;
const LONGEST_NAME = 14;
/** The width of a tick's text on the horizontal axis. */
const TICK_WIDTH = 60;

type ChartMark = { readonly x: number; readonly y: number; readonly title: string };
type Axes = { readonly x: Axis; readonly y: Axis; readonly bandWidth: number; readonly width: number };

/** A chart of rows as bars, lines, areas or points, as wide as there is room. */
export function ResultChart({ data }: { readonly data: ChartData }) {
  const { element, width: room } = useWidth<HTMLElement>();
  const width = Math.max(MIN_WIDTH, room);
  const axes = axesOf(data, width);
  const label = texts.sql.chartLabel(data.x.name, data.series.map(({ name }) => name).join(", "));
  return html`
    <figure ref=${element} class="result-chart">
      <svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${label}>
        ${yTicks(axes)}${xTicks(axes)}
        ${data.series.map((series, index) => marks(data, axes, series, index))}
      </svg>
      <ul class="result-chart-legend">
        ${data.series.map(
          ({ name }, index) => html`<li key=${index}><span class=${`swatch series-${index + 1}`}></span>${name}</li>`,
        )}
      </ul>
    </figure>
  `;
}

function axesOf({ kind, x, series }: ChartData, width: number): Axes {
  const horizontal = [LEFT, width - RIGHT] as const;
  const shown = Math.floor((width - RIGHT - LEFT) / TICK_WIDTH);
  const numbers = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const y = numberAxis(numbers, [HEIGHT - BOTTOM, TOP], { includesZero: kind === "bar" || kind === "area" });
  if (x.type === "name") {
    const band = bandAxis(x.values, horizontal, shown);
    return { x: band, y, bandWidth: band.width, width };
  }
  const values = x.values.filter((value) => value !== null);
  const wanted = Math.min(TICKS, shown - 1);
  const axis = x.type === "time" ? timeAxis(values, horizontal, wanted) : numberAxis(values, horizontal, { wanted });
  return { x: axis, y, bandWidth: 0, width };
}

function yTicks({ y: { ticks, place, format }, width }: Axes) {
  return ticks.map(
    (tick) => html`
      <line key=${`line ${tick}`} class="chart-rule" x1=${LEFT} x2=${width - RIGHT} y1=${place(tick)} y2=${place(tick)} />
      <text key=${`text ${tick}`} class="chart-tick" text-anchor="end" x=${LEFT - 8} y=${place(tick) + 4}>${format(tick)}</text>
    `,
  );
}

function xTicks({ x: { ticks, place, format }, width }: Axes) {
  return ticks.map((tick) => {
    const text = format(tick);
    const shown = text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME - 1)}…` : text;
    const x = Math.min(width - (shown.length * CHARACTER) / 2, place(tick));
    return html`<text key=${tick} class="chart-tick" text-anchor="middle" x=${x} y=${HEIGHT - BOTTOM + 20}>${shown}</text>`;
  });
}

function marks(data: ChartData, axes: Axes, series: ResultSeries, index: number) {
  const style = `series-${index + 1}`;
  const points = pointsOf(data, axes, series);
  if (data.kind === "bar") return bars(points, axes, { index, count: data.series.length });
  const dots = points.map(
    ({ x, y, title }, place) =>
      html`<circle key=${place} class=${`chart-dot ${style}`} cx=${x} cy=${y} r="3"><title>${title}</title></circle>`,
  );
  if (data.kind === "scatter") return dots;
  const line = points.map(({ x, y }, place) => `${place === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const ground = axes.y.place(0);
  const area =
    points.length > 0 ? `${line}L${points.at(-1)!.x.toFixed(1)} ${ground}L${points[0]!.x.toFixed(1)} ${ground}Z` : "";
  return html`
    ${data.kind === "area" && html`<path class=${`chart-area ${style}`} d=${area} />`}
    <path class=${`chart-path ${style}`} d=${line} />
    ${points.length <= 200 && dots}
  `;
}

function bars(
  points: readonly ChartMark[],
  { y, bandWidth }: Axes,
  { index, count }: { index: number; count: number },
) {
  const width = Math.max(1, (bandWidth * BAR_SHARE) / count);
  const ground = y.place(0);
  return points.map(
    (point, place) => html`
      <rect
        key=${place}
        class=${`chart-bar series-${index + 1}`}
        x=${point.x + (index - count / 2) * width}
        y=${Math.min(point.y, ground)}
        width=${width}
        height=${Math.max(1, Math.abs(point.y - ground))}
      >
        <title>${point.title}</title>
      </rect>
    `,
  );
}

/** Returns the points; those of a line are sorted from left to right. */
function pointsOf({ kind, x }: ChartData, axes: Axes, { name, values }: ResultSeries): ChartMark[] {
  const points = values.flatMap((value, row) => {
    const at = x.type === "name" ? row : (x.values[row] ?? null);
    if (value === null || at === null) return [];
    const title = `${x.type === "name" ? x.values[row] : axes.x.format(at)}\n${name}: ${formatNumber(value)}`;
    return [{ x: axes.x.place(at), y: axes.y.place(value), title }];
  });
  return kind === "line" || kind === "area" ? points.sort((one, other) => one.x - other.x) : points;
}
