import type { AccessMatrix } from "./read-access.ts";
import type { TableInterface } from "./read-table-interface.ts";

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
};

export const CONTRACT_SURFACES = ["graphql", "openapi", "tables", "types", "access"] as const;
/** From harmless to severe. */
export const CHANGE_LEVELS = ["compatible", "dangerous", "breaking"] as const;

export type ChangeLevel = (typeof CHANGE_LEVELS)[number];

export type ContractChange = {
  readonly surface: (typeof CONTRACT_SURFACES)[number];
  readonly level: ChangeLevel;
  /** `public.films.title`. */
  readonly object: string;
  readonly message: string;
};

/** The changes of one surface; the caller adds which. */
export type SurfaceChange = Omit<ContractChange, "surface">;

export type InterfaceComparison = { readonly changes: readonly ContractChange[]; readonly markdown: string };

/** The first database is read before it migrates, the other one afterwards: as their owner. */
export type CompareInterfaces = (
  databases: { readonly beforeUrl: string; readonly afterUrl: string; readonly signal: AbortSignal },
  migrate: () => Promise<unknown>,
) => Promise<InterfaceComparison>;
