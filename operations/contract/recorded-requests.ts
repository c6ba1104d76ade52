import type pg from "pg";
import type { OtherRequests, RequestOutline } from "#http/observability";
import type { RequestRate } from "#migrate";

/** A shape of request, with the number of requests in the last hour. */
export type RecordedRequest = RequestOutline & {
  readonly requests: number;
  /** True if it stands for the requests of the interface without a shape: they may use anything. */
  readonly others?: true;
};

const HAS_REQUESTS = "select pg_catalog.to_regclass('content_service.recorded_requests') is not null as has";
const READ_REQUESTS = `
  select recorded.shape, coalesce(pg_catalog.sum(counted.requests), 0)::pg_catalog.float8 as requests
  from content_service.recorded_requests as recorded
  join content_service.recorded_request_counts as counted
    on counted.request_id operator(pg_catalog.=) recorded.id
    and counted.period operator(pg_catalog.>) (pg_catalog.now() operator(pg_catalog.-) interval '65 minutes')
  group by recorded.id, recorded.shape
  order by recorded.shape operator(pg_catalog.?) 'others' desc, requests desc`;

/** Reads requests without a shape first, then the most frequent ones; null if none are recorded in this database. */
export async function readRecordedRequests(client: pg.ClientBase): Promise<readonly RecordedRequest[] | null> {
  const { rows: found } = await client.query<{ has: boolean }>(HAS_REQUESTS);
  if (!found[0]!.has) return null;
  const { rows } = await client.query<{ shape: RequestOutline | OtherRequests; requests: number }>(READ_REQUESTS);
  return rows.length === 0 ? null : rows.map(({ shape, requests }) => ({ ...toShape(shape), requests }));
}

function toShape(shape: RequestOutline | OtherRequests): RequestOutline & Partial<OtherRequests> {
  if (!("others" in shape)) return shape;
  return {
    ...shape,
    role: "any role",
    request: `requests of the ${shape.interface} interface without a shape`,
    relations: {},
    functions: {},
  };
}

/** Reads how often the recorded requests read and write each table; null if none are recorded. */
export async function readRequestRates(client: pg.ClientBase): Promise<RequestRate[] | null> {
  const requests = await readRecordedRequests(client);
  return requests && toRequestRates(requests);
}

function toRequestRates(requests: readonly RecordedRequest[]): RequestRate[] {
  // A subscription reads no table while it waits for changes.
  const running = requests.filter((each) => each.interface !== "realtime");
  return running.map(({ relations, request, requests: perHour }) => {
    const isMutation = request.startsWith("mutation");
    const names = Object.keys(relations);
    const writes = names.filter((name) => {
      const { insert, update, deletes } = relations[name]!;
      return isMutation || insert.length > 0 || update.length > 0 || deletes;
    });
    return { reads: names, writes, perHour };
  });
}
