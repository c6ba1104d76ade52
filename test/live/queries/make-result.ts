import type { ChangeFilter, ResultContents } from "../../../live/matching/affected-rows.ts";
import type { LiveQueryResult } from "../../../live/queries/live-subscriber.ts";
import { RESULT_ACTIONS, type ResultAction } from "../../../live/queries/result-states.ts";
import { type ResultActions, SharedResult } from "../../../live/queries/shared-result.ts";
import type { TableRows } from "../../../live/queries/table-rows.ts";

/** Performs no action. */
export const NO_ACTIONS = Object.fromEntries(
  Object.keys(RESULT_ACTIONS).map((action) => [action, () => {}]),
) as unknown as ResultActions<LiveQueryResult> satisfies Record<ResultAction, unknown>;

type MadeResult = { readonly tableRows?: TableRows; readonly contents?: ResultContents };

/** A result that depends on one relation. */
export function makeResult(
  key: string,
  relation: number,
  filters: readonly ChangeFilter[],
  { tableRows, contents }: MadeResult = {},
): LiveQueryResult {
  const dependencies = {
    relations: [{ oid: relation, reads: 1, policyColumns: [] }],
    claims: new Set<string>(),
    readsRequest: false,
    obstacles: [],
    deciding: { relations: [], functions: [] },
    texts: [],
    fingerprint: "",
    rowFilters: [],
    timeParameters: [],
  };
  return new SharedResult(
    key,
    { dependencies, filters, statements: [], tableRows: tableRows ?? null, running: new Set() },
    { text: "", position: 0n, startedAt: 0, contents: contents ?? null },
    NO_ACTIONS,
  );
}
