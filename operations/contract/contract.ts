import type { ChangeLevel, ContractChange, ContractSurface, InterfaceComparison } from "#operations/admin-types";
import type { AccessMatrix } from "./read-access.ts";
import type { TableInterface } from "./read-table-interface.ts";
import type { RecordedRequest } from "./recorded-requests.ts";

export type { AffectedRequest, ChangeLevel, ContractChange, InterfaceComparison } from "#operations/admin-types";

export const CONTRACT_FORMAT = 1;

/** The contract with clients: the interfaces as all request roles together see them, and each role's privileges. */
export type Contract = {
  readonly format: typeof CONTRACT_FORMAT;
  /** The GraphQL schema in the schema definition language. */
  readonly graphql: string;
  /** The OpenAPI documents of `/api/v<N>`, by `v<N>`. */
  readonly openapi: Readonly<Record<string, unknown>>;
  readonly tables: TableInterface;
  /** The TypeScript types for supabase-js. */
  readonly types: string;
  readonly access: AccessMatrix;
  /** The clients' requests in the hour before; only in a snapshot. */
  readonly requests?: readonly RecordedRequest[] | null;
};

export const CONTRACT_SURFACES: readonly ContractSurface[] = ["graphql", "openapi", "tables", "types", "access"];
/** The levels, from harmless to severe. */
export const CHANGE_LEVELS: readonly ChangeLevel[] = ["compatible", "dangerous", "breaking"];

/** A change of one surface; the caller adds the surface. */
export type SurfaceChange = Omit<ContractChange, "surface">;

/** Compares the interfaces of two databases, read as their owner: the first before it migrates, the other afterwards. */
export type CompareInterfaces = (
  databases: {
    readonly beforeUrl: string;
    readonly afterUrl: string;
    /** The recorded requests to check against the second database; null if none are recorded. */
    readonly requests: readonly RecordedRequest[] | null;
    readonly signal: AbortSignal;
  },
  migrate: () => Promise<unknown>,
) => Promise<InterfaceComparison>;
