import type { ChangeFilter } from "../../../live/queries/affected-rows.ts";
import type { LiveQueryResult } from "../../../live/queries/relation-results.ts";
import { SharedResult } from "../../../live/queries/shared-result.ts";
import type { TableRows } from "../../../live/queries/table-rows.ts";

/** A result that depends on one relation. */
export function makeResult(
  key: string,
  relation: number,
  filters: readonly ChangeFilter[],
  tableRows: TableRows | null = null,
): LiveQueryResult {
  const dependencies = {
    relations: [{ oid: relation, isReadOnce: true, policyColumns: [] }],
    claims: new Set<string>(),
    readsRequest: false,
    obstacles: [],
    deciding: { relations: [], functions: [] },
    fingerprint: "",
    rowFilters: [],
  };
  return new SharedResult(key, { dependencies, filters, statements: [], tableRows, running: new Set() });
}
