import type { Cancellation, FoundRequests, FunctionLines, RunningSession, RunningState } from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";

/** Reads the state, with the intervals after `since`, the `at` of an interval. */
export function readRunning(since: string | null, signal: AbortSignal): Promise<RunningState> {
  const query = since === null ? "" : `?since=${encodeURIComponent(since)}`;
  return adminCall<RunningState>(`GET /running${query}`, { signal });
}

export function cancelStatement({ pid, started_at }: RunningSession): Promise<Cancellation> {
  return adminCall("POST /running/cancel", { body: { pid, started_at } });
}

export function readFunctionLines(signal: AbortSignal): Promise<FunctionLines> {
  return adminCall<FunctionLines>("GET /functions/log", { signal });
}

export type RequestFilter = { readonly search: string; readonly status: string; readonly least_ms: string };

export function searchRequests(filter: RequestFilter, signal: AbortSignal): Promise<FoundRequests> {
  return adminCall<FoundRequests>(`GET /requests?${new URLSearchParams(filter)}`, { signal });
}
