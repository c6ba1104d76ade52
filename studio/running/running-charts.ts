import type { RunningState, SampledInterval } from "#operations/admin-types";
import { type ChartPoint, type ChartUnit, TimeChart } from "../components/chart.ts";
import { roundUp, roundUpBytes } from "../components/scales.ts";
import { html } from "../html.ts";
import { formatBytes, formatDuration, formatNumber } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { chartSpan, type RunningHistory, requestSeries } from "./running-history.ts";

type ChartsProps = { readonly history: RunningHistory; readonly latest: RunningState };

const RATE: ChartUnit = { format: (rate) => texts.running.perSecond(formatNumber(rate)) };
const DURATION: ChartUnit = { format: formatDuration };
/** The axis of whole things ends at one of them at least. */
const NUMBER: ChartUnit = { format: formatNumber, roundUp: (highest) => roundUp(Math.max(1, highest)) };
const CORES: ChartUnit = { format: (cores) => `${formatNumber(cores * 100)} %` };
const BYTES: ChartUnit = { format: formatBytes, roundUp: roundUpBytes };

export function RunningCharts({ history, latest }: ChartsProps) {
  const span = chartSpan(history);
  const { rate, failures, p50, p99 } = requestSeries(history);
  const sampled = (measure: (sample: SampledInterval) => number): ChartPoint[] =>
    history.samples.map((sample) => ({ at: Date.parse(sample.at), value: measure(sample) }));
  const names = texts.running.series;
  return html`
    <section aria-label=${texts.running.charts} class="charts">
      <${TimeChart} ...${span} title=${texts.running.requestRate} unit=${RATE} series=${[
        { name: names.all, points: rate },
        { name: names.failures, points: failures },
      ]} />
      <${TimeChart} ...${span} title=${texts.running.responseTime} unit=${DURATION} series=${[
        { name: "p50", points: p50 },
        { name: "p99", points: p99 },
      ]} />
      <${TimeChart} ...${span} title=${texts.running.connections} unit=${NUMBER} series=${[
        { name: names.open, points: sampled(({ connections }) => connections) },
        { name: names.active, points: sampled(({ in_flight }) => in_flight) },
        { name: names.waiting, points: sampled(({ waiting }) => waiting) },
      ]} />
      <${TimeChart} ...${span} title=${texts.running.processor} unit=${CORES} series=${[
        { name: names.allProcesses, points: sampled(({ processor_cores }) => processor_cores) },
      ]} />
      <${TimeChart} ...${span} title=${texts.running.memory} unit=${BYTES} series=${[
        { name: names.allProcesses, points: sampled(({ memory_bytes }) => memory_bytes) },
      ]} />
      <${TimeChart} ...${span} title=${texts.running.realtime} unit=${NUMBER} series=${[
        { name: names.sockets, points: sampled(({ sockets }) => sockets) },
        { name: names.channels, points: sampled(({ channels }) => channels) },
        { name: names.subscriptions, points: sampled(({ subscriptions }) => subscriptions) },
      ]} />
      ${
        latest.tasks &&
        html`<${TimeChart} ...${span} title=${texts.running.tasks} unit=${NUMBER} note=${texts.running.sinceOpened} series=${[
          { name: names.queued, points: history.tasks.map(({ at, queued }) => ({ at, value: queued })) },
          { name: names.running, points: history.tasks.map(({ at, running }) => ({ at, value: running })) },
        ]} />`
      }
    </section>
  `;
}
