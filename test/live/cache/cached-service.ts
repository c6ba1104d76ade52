import type pg from "pg";
import { parseLsn } from "../../../postgres/database/lsn.ts";
import type { Service } from "../../../service/service.ts";
import { anonKey, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";

/** Everything that the database has committed is in the stream of the service. */
export async function followed(service: Service, owner: pg.Client): Promise<void> {
  const { rows } = await owner.query<{ position: string }>("select pg_current_wal_flush_lsn()::text as position");
  const position = parseLsn(rows[0]!.position)!;
  await until(() => service.changes.hasPassed(position));
}

export const headersOf = (person: string, role = "authenticated") => ({
  apikey: anonKey,
  authorization: `Bearer ${token({ sub: person, role })}`,
});

export type Answer = { readonly status: number; readonly body: string; readonly cache: string | null };

export async function readFrom(url: string, path: string, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(`${url}/rest/v1/${path}`, { headers });
  const timing = response.headers.get("server-timing") ?? "";
  const [, cache = null] = /cache;desc=(\w+)/.exec(timing) ?? [];
  return { status: response.status, body: await response.text(), cache };
}

/** Reads until the answer comes from the cache. */
export async function warm(url: string, path: string, headers: Record<string, string>): Promise<Answer> {
  let answer = await readFrom(url, path, headers);
  await until(async () => {
    answer = await readFrom(url, path, headers);
    return answer.cache === "hit";
  });
  return answer;
}
