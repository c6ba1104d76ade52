export type Labels = Readonly<Record<string, string | number>>;

export type MetricSample = {
  readonly labels: Labels;
  readonly value: number;
  /** The samples of a histogram have their own names. */
  readonly metricName?: string;
};

/** How the values of several processes are combined. */
export type Aggregation = "sum" | "max";

/** A metric and its current values, in prom-client's JSON format. */
export type Metric = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly aggregator: Aggregation;
  readonly values: readonly MetricSample[];
};

/** Returns the current metrics of one component. */
export type MetricSource = () => readonly Metric[] | Promise<readonly Metric[]>;

/** Null: the value is unknown. */
type MetricValue = number | null | readonly MetricSample[];

const PREFIX = "content_service";

/** A value that only increases; its name ends in `_total`. */
export function counter(name: string, help: string, value: MetricValue): Metric {
  return { name: `${PREFIX}_${name}`, help, type: "counter", aggregator: "sum", values: samplesOf(value) };
}

export function gauge(name: string, help: string, value: MetricValue, aggregator: Aggregation = "sum"): Metric {
  return { name: `${PREFIX}_${name}`, help, type: "gauge", aggregator, values: samplesOf(value) };
}

export function histogram(name: string, help: string, samples: (name: string) => readonly MetricSample[]): Metric {
  const whole = `${PREFIX}_${name}`;
  return { name: whole, help, type: "histogram", aggregator: "sum", values: samples(whole) };
}

/** One sample per entry, with the key as the label's value. */
export function labelled(label: string, values: Readonly<Record<string, number>>): readonly MetricSample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}

function samplesOf(value: MetricValue): readonly MetricSample[] {
  if (value === null) return [];
  return typeof value === "number" ? [{ labels: {}, value }] : value;
}
