import type { RunningState } from "#operations/admin-types";
import { type ChartPoint, TimeChart } from "../components/chart.ts";
import { html } from "../html.ts";
import { formatBytes, formatDuration, formatNumber } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { type RunningHistory, type RunningSample, requestSeries, SPAN_MS } from "./running-history.ts";

type ChartsProps = { readonly history: RunningHistory; readonly latest: RunningState };

/** The shortest span of a chart. */
const MIN_SPAN_MS = 10_000;

const formatPercent = (cores: number) => `${formatNumber(cores * 100)} %`;

export function RunningCharts({ history, latest }: ChartsProps) {
  const to = Date.parse(latest.at);
  const span = { from: to - SPAN_MS, to };
  // Only this page has measured these values, so the time before it was opened would be empty.
  const measured = { from: Math.max(span.from, Math.min(history.samples[0]?.at ?? to, to - MIN_SPAN_MS)), to };
  const { rate, failures, p50, p99 } = requestSeries(history);
  const sampled = (measure: (sample: RunningSample) => number): ChartPoint[] =>
    history.samples.map((sample) => ({ at: sample.at, value: measure(sample) }));
  const names = texts.running.series;
  return html`
    <section aria-label=${texts.running.charts} class="charts">
      <${TimeChart} ...${span} title=${texts.running.requestRate} format=${formatNumber} series=${[
        { name: names.all, points: rate },
        { name: names.failures, points: failures },
      ]} />
      <${TimeChart} ...${span} title=${texts.running.responseTime} format=${formatDuration} series=${[
        { name: "p50", points: p50 },
        { name: "p99", points: p99 },
      ]} />
      <${TimeChart} ...${measured} title=${texts.running.connections} format=${formatNumber} series=${[
        { name: names.open, points: sampled(({ connections }) => connections) },
        { name: names.active, points: sampled(({ active }) => active) },
        { name: names.waiting, points: sampled(({ waiting }) => waiting) },
      ]} />
      <${TimeChart} ...${measured} title=${texts.running.processor} format=${formatPercent} series=${[
        { name: names.allProcesses, points: sampled(({ processor }) => processor) },
      ]} />
      <${TimeChart} ...${measured} title=${texts.running.memory} format=${formatBytes} series=${[
        { name: names.allProcesses, points: sampled(({ memoryBytes }) => memoryBytes) },
      ]} />
      <${TimeChart} ...${measured} title=${texts.running.realtime} format=${formatNumber} series=${[
        { name: names.sockets, points: sampled(({ sockets }) => sockets) },
        { name: names.channels, points: sampled(({ channels }) => channels) },
        { name: names.subscriptions, points: sampled(({ subscriptions }) => subscriptions) },
      ]} />
      ${
        latest.tasks &&
        html`<${TimeChart} ...${measured} title=${texts.running.tasks} format=${formatNumber} series=${[
          { name: names.queued, points: sampled(({ queued }) => queued) },
          { name: names.running, points: sampled(({ running }) => running) },
        ]} />`
      }
    </section>
  `;
}
