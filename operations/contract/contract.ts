import type { ChangeLevel, ContractChange, ContractSurface, InterfaceComparison } from "#operations/admin-types";
import type { AccessMatrix } from "./read-access.ts";
import type { TableInterface } from "./read-table-interface.ts";
import type { RecordedRequest } from "./recorded-requests.ts";

export type { AffectedRequest, ChangeLevel, ContractChange, InterfaceComparison } from "#operations/admin-types";

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

export const CONTRACT_SURFACES: readonly ContractSurface[] = ["graphql", "openapi", "tables", "types", "access"];
/** From harmless to severe. */
export const CHANGE_LEVELS: readonly ChangeLevel[] = ["compatible", "dangerous", "breaking"];

/** The changes of one surface; the caller adds which. */
export type SurfaceChange = Omit<ContractChange, "surface">;

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
