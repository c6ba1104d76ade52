import type { Catalog } from "../../engine/catalog/catalog.ts";

/** What a document is about: one exposed schema, as one role sees it. */
export type Subject = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly schema: string;
  /** By name; null: all tables of the schema, and its functions. */
  readonly tables: readonly string[] | null;
  readonly mode: "follow-privileges" | "ignore-privileges";
  /** `https://api.example.org/rest/v1`, or `/rest/v1` for wherever the document was fetched from. */
  readonly serverUrl: string;
  /** Whether the document asks for a token. */
  readonly securityActive: boolean;
  /** The service's own. */
  readonly version: string;
};
