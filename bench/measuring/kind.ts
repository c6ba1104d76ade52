export type BenchOptions = {
  readonly rounds: number;
  /** How long one variant runs in a round. */
  readonly seconds: number;
  /** How long what only time can show goes on. */
  readonly minutes: number;
  /** Seconds from one fault to the next. */
  readonly every: number;
  /** Which of a bench's parts to run; none is all. */
  readonly only: readonly string[];
  /** Major versions of Postgres. */
  readonly versions: readonly number[];
  /** How many random schemas, and from which seed. */
  readonly schemas: number;
  readonly seed: number;
  /** The size of a large database. */
  readonly megabytes: number;
  /** The size of a backlog. */
  readonly tasks: number;
  /** How many keep a query open. */
  readonly clients: number;
  readonly print: (line: string) => void;
};

/** Tells what it measured and returns it as plain data. One that checks what must hold says whether something did not. */
export type Bench = (options: BenchOptions) => Promise<object & { readonly isMissed?: boolean }>;
