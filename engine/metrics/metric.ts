export type Labels = Readonly<Record<string, string | number>>;

export type Sample = {
  readonly labels: Labels;
  readonly value: number;
  /** A histogram's samples have names of their own. */
  readonly metricName?: string;
};

/** How one number is made of those of several processes. */
export type Together = "sum" | "max";

/** A metric as it stands, in the form in which prom-client hands metrics from one process to another. */
export type Metric = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly aggregator: Together;
  readonly values: readonly Sample[];
};

/** What a part of the program tells of itself when it is asked: numbers that it has added up anyhow. */
export type Source = () => readonly Metric[] | Promise<readonly Metric[]>;

/** Null: nobody knows. */
type Told = number | null | readonly Sample[];

const PREFIX = "content_service";

/** What only ever grows; its name ends in `_total`. */
export function counter(name: string, help: string, told: Told): Metric {
  return { name: `${PREFIX}_${name}`, help, type: "counter", aggregator: "sum", values: samplesOf(told) };
}

export function gauge(name: string, help: string, told: Told, aggregator: Together = "sum"): Metric {
  return { name: `${PREFIX}_${name}`, help, type: "gauge", aggregator, values: samplesOf(told) };
}

export function histogram(name: string, help: string, samples: (name: string) => readonly Sample[]): Metric {
  const whole = `${PREFIX}_${name}`;
  return { name: whole, help, type: "histogram", aggregator: "sum", values: samples(whole) };
}

/** One sample for each entry, with its key as the label. */
export function labelled(label: string, values: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}

function samplesOf(told: Told): readonly Sample[] {
  if (told === null) return [];
  return typeof told === "number" ? [{ labels: {}, value: told }] : told;
}
