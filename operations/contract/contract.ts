import type { AccessMatrix } from "./read-access.ts";
import type { TableInterface } from "./read-table-interface.ts";
import type { RecordedRequest } from "./recorded-requests.ts";

export const CONTRACT_FORMAT = 1;

/** What clients rely on: the interfaces as all request roles together see them, and what each role may do. */
export type Contract = {
  readonly format: typeof CONTRACT_FORMAT;
  /** In the schema definition language. */
  readonly graphql: string;
  /** The OpenAPI documents of `/api/v<N>`, by `v<N>`. */
  readonly openapi: Readonly<Record<string, unknown>>;
  readonly tables: TableInterface;
  /** The TypeScript types for supabase-js. */
  readonly types: string;
  readonly access: AccessMatrix;
  /** In a snapshot: what clients requested in the hour before. */
  readonly requests?: readonly RecordedRequest[] | null;
};

export const CONTRACT_SURFACES = ["graphql", "openapi", "tables", "types", "access"] as const;
/** From harmless to severe. */
export const CHANGE_LEVELS = ["compatible", "dangerous", "breaking"] as const;

export type ChangeLevel = (typeof CHANGE_LEVELS)[number];

/** A recorded request that a breaking change concerns. */
export type AffectedRequest = Pick<RecordedRequest, "interface" | "role" | "request" | "requests"> & {
  /** Null: it is not refused, but its response has another form, or other rows, or some of its values are refused. */
  readonly refusal: string | null;
};

export type ContractChange = {
  readonly surface: (typeof CONTRACT_SURFACES)[number];
  readonly level: ChangeLevel;
  /** `public.films.title`. */
  readonly object: string;
  readonly message: string;
  /** Of a breaking change, where requests are recorded: those that use the object. */
  readonly requests?: readonly AffectedRequest[];
};

/** The changes of one surface; the caller adds which. */
export type SurfaceChange = Omit<ContractChange, "surface">;

export type InterfaceComparison = { readonly changes: readonly ContractChange[]; readonly markdown: string };

/** The first database is read before it migrates, the other one afterwards: as their owner. */
export type CompareInterfaces = (
  databases: {
    readonly beforeUrl: string;
    readonly afterUrl: string;
    /** Those that the second one is checked with; null if none are recorded. */
    readonly requests: readonly RecordedRequest[] | null;
    readonly signal: AbortSignal;
  },
  migrate: () => Promise<unknown>,
) => Promise<InterfaceComparison>;
