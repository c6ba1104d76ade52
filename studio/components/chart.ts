import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { timeAxis } from "./axis.ts";
import { linearScale, roundUp } from "./scales.ts";
import { useWidth } from "./use-width.ts";

export type ChartPoint = { readonly at: number; readonly value: number };

type ChartSeries = { readonly name: string; readonly points: readonly ChartPoint[] };

/** How the values of a chart are written. */
export type ChartUnit = {
  readonly format: (value: number) => string;
  /** Returns the end of the axis. */
  readonly roundUp?: (highest: number) => number;
};

type TimeChartProps = {
  readonly title: string;
  readonly series: readonly ChartSeries[];
  /** The start of the time span; both are in milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly unit: ChartUnit;
  /** Where the values come from, if it is not the same for all charts. */
  readonly note?: string;
};

const TOP = 8;
const BOTTOM = 88;
const HEIGHT = 106;
/** The room for the labels of the vertical axis, and for half of the last time. */
const LEFT = 58;
const RIGHT = 18;
const TIME_WIDTH = 56;

/** Lines over time, with axes. Each has its own dashes and its newest value in the legend; the summary is its text. */
export function TimeChart({ title, series, from, to, unit, note }: TimeChartProps) {
  const { element, width } = useWidth<HTMLDivElement>();
  const { format } = unit;
  const shown = series.map(({ name, points }) => ({ name, points: points.filter(({ at }) => at >= from && at <= to) }));
  const isEmpty = shown.every(({ points }) => points.length === 0);
  const top = (unit.roundUp ?? roundUp)(Math.max(...shown.map(({ points }) => highestOf(points))));
  const right = Math.max(LEFT + 1, width - RIGHT);
  const x = linearScale(from, to, LEFT, right);
  const y = linearScale(0, top, BOTTOM, TOP);
  const pathOf = (points: readonly ChartPoint[]) => {
    const [first, ...others] = points.map(({ at, value }) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
    // A line without length is drawn as a dot.
    return first === undefined ? "" : `M${first}h0${others.map((place) => `L${place}`).join("")}`;
  };
  const summary = shown
    .map(({ name, points }) =>
      texts.components.chartSummary(name, format(points.at(-1)?.value ?? 0), format(highestOf(points))),
    )
    .join(" ");
  return html`
    <figure class="chart">
      <figcaption>
        <span class="chart-title">${title}</span>
        ${note && html`<span class="quiet">${note}</span>`}
      </figcaption>
      <div ref=${element} class="chart-plot">
        <svg width=${width} height=${HEIGHT} role="img" aria-label=${`${title}. ${isEmpty ? texts.components.chartEmpty : summary}`}>
          <${ChartAxes} from=${from} to=${to} right=${right} top=${format(top)} zero=${format(0)} />
          ${
            isEmpty
              ? html`<text class="chart-tick" x=${(LEFT + right) / 2} y=${(TOP + BOTTOM) / 2 - 6} text-anchor="middle">${texts.components.chartEmpty}</text>`
              : shown.map(
                  ({ name, points }, index) =>
                    html`<path key=${name} class=${`chart-line series-${index + 1}`} d=${pathOf(points)} />`,
                )
          }
        </svg>
      </div>
      <${ChartLegend} series=${shown} format=${format} />
    </figure>
  `;
}

function ChartLegend({ series, format }: Pick<TimeChartProps, "series"> & Pick<ChartUnit, "format">) {
  return html`
    <ul class="chart-legend">
      ${series.map(
        ({ name, points }, index) => html`
          <li key=${name}>
            <svg viewBox="0 0 20 4" width="20" height="4" aria-hidden="true">
              <path class=${`chart-line series-${index + 1}`} d="M0 2H20" />
            </svg>
            ${name} <strong>${points.length > 0 ? format(points.at(-1)!.value) : "–"}</strong>
          </li>
        `,
      )}
    </ul>
  `;
}

type AxesProps = {
  readonly from: number;
  readonly to: number;
  readonly right: number;
  readonly top: string;
  readonly zero: string;
};

/** The lowest and the highest value with their units, and round times. */
function ChartAxes({ from, to, right, top, zero }: AxesProps) {
  const times = timeAxis([from, to], [LEFT, right], Math.max(1, Math.floor((right - LEFT) / TIME_WIDTH)));
  const middle = (TOP + BOTTOM) / 2;
  return html`
    <path class="chart-grid" d=${[TOP, middle, BOTTOM].map((height) => `M${LEFT} ${height}H${right}`).join("")} />
    <text class="chart-tick" x=${LEFT - 6} y=${TOP + 4} text-anchor="end">${top}</text>
    <text class="chart-tick" x=${LEFT - 6} y=${BOTTOM + 4} text-anchor="end">${zero}</text>
    ${times.ticks.map(
      (tick) => html`
        <g key=${tick}>
          <path class="chart-grid" d=${`M${times.place(tick).toFixed(1)} ${BOTTOM}v4`} />
          <text class="chart-tick" x=${times.place(tick).toFixed(1)} y=${HEIGHT - 3} text-anchor="middle">
            ${times.format(tick)}
          </text>
        </g>
      `,
    )}
  `;
}

function highestOf(points: readonly ChartPoint[]): number {
  return Math.max(0, ...points.map(({ value }) => value));
}
