import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { ErrorBody } from "../../engine/errors.ts";

/** Some collections, by the names in their addresses, or those of a schema. */
export type Choice = { readonly names: readonly string[] } | { readonly schema: string };

/** What a document is about: one version of the conventional interface, as one role sees it. */
export type Subject = {
  readonly catalog: Catalog;
  readonly role: string;
  readonly version: number;
  readonly isDeprecated: boolean;
  /** Which collections; null: all, and all else. */
  readonly only: Choice | null;
  readonly errorBody: ErrorBody;
  /** Where clients reach the service; null: where the document came from. */
  readonly publicUrl: string | null;
  /** The addresses besides collections that are served here. */
  readonly routes: ReadonlySet<string>;
  /** Those below which all is served. */
  readonly folders: readonly string[];
  /** Whether calls can be left for later. */
  readonly hasTasks: boolean;
};
