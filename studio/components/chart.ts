import { html } from "../html.ts";
import { formatDuration } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { linearScale, roundUp } from "./scales.ts";
import { useWidth } from "./use-width.ts";

export type ChartPoint = { readonly at: number; readonly value: number };

type ChartSeries = { readonly name: string; readonly points: readonly ChartPoint[] };

type TimeChartProps = {
  readonly title: string;
  readonly series: readonly ChartSeries[];
  /** The start of the time span; both are in milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  readonly format: (value: number) => string;
};

const HEIGHT = 80;

/** Lines over the last minutes. Each has its own dashes and its newest value in the legend; the summary is its text. */
export function TimeChart({ title, series, from, to, format }: TimeChartProps) {
  const { element, width } = useWidth<HTMLDivElement>();
  const shown = series.map(({ name, points }) => ({ name, points: points.filter(({ at }) => at >= from && at <= to) }));
  const highest = Math.max(0, ...shown.flatMap(({ points }) => points.map(({ value }) => value)));
  const top = roundUp(highest);
  const x = linearScale(from, to, 0, width);
  const y = linearScale(0, top, HEIGHT, 1);
  const pathOf = (points: readonly ChartPoint[]) =>
    points
      .map(({ at, value }, index) => `${index === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)
      .join("");
  const summary = shown
    .map(({ name, points }) =>
      texts.components.chartSummary(name, format(points.at(-1)?.value ?? 0), format(highestOf(points))),
    )
    .join(" ");
  return html`
    <figure class="chart">
      <figcaption>
        <span class="chart-title">${title}</span>
        <span class="quiet">${texts.components.chartTop(formatDuration(to - from), format(top))}</span>
      </figcaption>
      <div ref=${element} class="chart-plot">
        <svg width=${width} height=${HEIGHT} role="img" aria-label=${`${title}. ${summary}`}>
          <path class="chart-grid" d=${`M0 1H${width}M0 ${HEIGHT / 2}H${width}M0 ${HEIGHT - 0.5}H${width}`} />
          ${shown.map(
            ({ name, points }, index) =>
              html`<path key=${name} class=${`chart-line series-${index + 1}`} d=${pathOf(points)} />`,
          )}
        </svg>
      </div>
      <ul class="chart-legend">
        ${shown.map(
          ({ name, points }, index) => html`
            <li key=${name}>
              <svg viewBox="0 0 20 4" width="20" height="4" aria-hidden="true">
                <path class=${`chart-line series-${index + 1}`} d="M0 2H20" />
              </svg>
              ${name} <strong>${format(points.at(-1)?.value ?? 0)}</strong>
            </li>
          `,
        )}
      </ul>
    </figure>
  `;
}

function highestOf(points: readonly ChartPoint[]): number {
  return Math.max(0, ...points.map(({ value }) => value));
}
