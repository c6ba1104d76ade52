export type BenchOptions = {
  readonly rounds: number;
  /** The duration of one variant in a round. */
  readonly seconds: number;
  /** The duration of benchmarks that only show their result over time. */
  readonly minutes: number;
  /** The seconds from one fault to the next. */
  readonly every: number;
  /** The parts of a benchmark to run; empty for all. */
  readonly only: readonly string[];
  /** The major versions of Postgres. */
  readonly versions: readonly number[];
  /** The number of random schemas; `seed` determines them. */
  readonly schemas: number;
  readonly seed: number;
  /** The size of a large database. */
  readonly megabytes: number;
  /** The size of a backlog. */
  readonly tasks: number;
  /** The number of clients with an open query. */
  readonly clients: number;
  readonly print: (line: string) => void;
};

/** Prints its measurements and returns them as plain data. `isMissed` is true if a check or a target failed. */
export type Bench = (options: BenchOptions) => Promise<object & { readonly isMissed?: boolean }>;
