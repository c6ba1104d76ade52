import type { GatewayResponse } from "#http";
import type { Intent } from "#planner/intent";

export type ResourceRows = {
  /** The JSON array of rows, or the value of a function that returns no rows. */
  readonly text: string;
  readonly count: number;
  /** The number of all rows, if it was requested. */
  readonly total: number | null;
};

/** Runs a statement as the caller. Intents with the same plan key differ in their values only. */
export type RunRows = (intent: Intent, planKey?: object) => Promise<ResourceRows>;

/** Parsed values of a row or of arguments, by column or argument name; JSON values are not parsed. */
export type SentMembers = ReadonlyMap<string, { readonly value?: unknown }>;

/** The operation of a request on the rows at its path: its statement, and the response to the statement's result. */
export type ResourceOperation = {
  /** The intent; a function if the body has to be parsed, or other rows have to be read, first. */
  readonly intent: Intent | ((run: RunRows) => Promise<Intent>);
  readonly planKey?: object | undefined;
  /** Runs after the intent is known and before its statement. */
  readonly precheck?: ((run: RunRows) => Promise<void>) | undefined;
  /** Returns the values of the body, once the intent is known; Postgres may reject one of them. */
  readonly sent?: () => readonly SentMembers[];
  readonly respond: (rows: ResourceRows, run: RunRows) => GatewayResponse | Promise<GatewayResponse>;
};
