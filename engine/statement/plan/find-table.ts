import type { Catalog } from "../../catalog/catalog.ts";
import type { Routine } from "../../catalog/routines.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import type { QualifiedName } from "../../catalog/types.ts";
import { editDistance } from "../../edit-distance.ts";
import { ApiError } from "../../errors.ts";

const MIN_SIMILARITY = 0.75;

/** Throws PGRST205 if the table does not exist or is not served. */
export function findTable(name: QualifiedName, catalog: Catalog, role: string): CatalogTable {
  const table = catalog.findTable(name);
  if (!table || !isServed(table, catalog)) throw tableNotFound(name, catalog, role);
  return table;
}

/** Partitions are served as part of their table. */
function isServed({ schema, isPartition }: CatalogTable, catalog: Catalog): boolean {
  return !isPartition && catalog.schemas.get(schema)?.exposed === true;
}

function tableNotFound({ schema, name }: QualifiedName, catalog: Catalog, role: string): ApiError {
  const tables = catalog.schemas.get(schema)?.tables ?? new Map<string, CatalogTable>();
  const mayName = (known: string) =>
    isServed(tables.get(known)!, catalog) && mayNameTable(catalog, role, tables.get(known)!);
  const suggestion = suggestName(name, [...tables.keys()], { minSimilarity: MIN_SIMILARITY, mayName });
  return new ApiError("notFound", "PGRST205", `Could not find the table '${schema}.${name}' in the schema cache`, {
    hint: suggestion && `Perhaps you meant the table '${schema}.${suggestion}'`,
  });
}

const TABLE_PRIVILEGES = ["select", "insert", "update", "delete"] as const;

const MIN_PIECE_LENGTH = 2;
const MAX_PIECE_LENGTH = 3;
const MAX_RANKED = 50;
/** Comparing with more names would make the error too slow. */
const MAX_CANDIDATES = 500;

type SuggestionRules = {
  /** The minimum similarity, from 0 to 1. */
  readonly minSimilarity: number;
  /** Whether the error may disclose the name to the caller. */
  readonly mayName: (known: string) => boolean;
};

/**
 * The most similar known name, as computed by PostgREST's library fuzzyset: among names that share trigrams, or else
 * bigrams, the one with the least edit distance.
 */
export function suggestName(
  name: string,
  candidates: readonly string[],
  { minSimilarity: least, mayName }: SuggestionRules,
): string | null {
  if (candidates.length > MAX_CANDIDATES) return null;
  const wanted = name.toLowerCase();
  const exact = candidates.find((candidate) => candidate.toLowerCase() === wanted && mayName(candidate));
  if (exact !== undefined) return exact;
  for (let size = MAX_PIECE_LENGTH; size >= MIN_PIECE_LENGTH; size--) {
    const pieces = countPieces(wanted, size);
    const best = candidates
      .map((candidate) => ({ candidate, shared: cosineSimilarity(pieces, countPieces(candidate.toLowerCase(), size)) }))
      .filter(({ shared }) => shared > 0)
      .sort((a, b) => b.shared - a.shared)
      .slice(0, MAX_RANKED)
      .map(({ candidate }) => ({ candidate, score: editSimilarity(wanted, candidate.toLowerCase()) }))
      .sort((a, b) => b.score - a.score)
      .find((found) => found.score >= least && mayName(found.candidate));
    if (best) return best.candidate;
  }
  return null;
}

function countPieces(text: string, size: number): Map<string, number> {
  const enclosed = `-${text.replace(/[^\p{L}\p{N} ,]/gu, "")}-`;
  const counts = new Map<string, number>();
  for (let at = 0; at + size <= enclosed.length; at++) {
    const piece = enclosed.slice(at, at + size);
    counts.set(piece, (counts.get(piece) ?? 0) + 1);
  }
  return counts;
}

/** The cosine similarity of two gram counts. */
function cosineSimilarity(a: Map<string, number>, b: Map<string, number>): number {
  let product = 0;
  for (const [piece, count] of a) product += count * (b.get(piece) ?? 0);
  return product / (vectorLength(a) * vectorLength(b));
}

function vectorLength(counts: Map<string, number>): number {
  return Math.sqrt([...counts.values()].reduce((sum, count) => sum + count * count, 0));
}

function editSimilarity(a: string, b: string): number {
  return 1 - editDistance(a, b, { swaps: false }) / Math.max(a.length, b.length);
}

/** Whether an error may name the table to the role: only if the role has a privilege on it. */
export function mayNameTable(catalog: Catalog, role: string, table: CatalogTable): boolean {
  if (!mayUseSchema(catalog, role, table.schema)) return false;
  return TABLE_PRIVILEGES.some(
    (privilege) =>
      catalog.hasPrivilege(role, privilege, table) ||
      (privilege !== "delete" &&
        [...table.columns.keys()].some((column) => catalog.hasPrivilege(role, privilege, table, column))),
  );
}

export function mayCallRoutine(catalog: Catalog, role: string, routine: Routine): boolean {
  return mayUseSchema(catalog, role, routine.schema) && catalog.hasPrivilege(role, "execute", routine);
}

function mayUseSchema(catalog: Catalog, role: string, name: string): boolean {
  const schema = catalog.schemas.get(name);
  return schema !== undefined && catalog.hasPrivilege(role, "usage", schema);
}
