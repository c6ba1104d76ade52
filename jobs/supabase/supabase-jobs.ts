import type { Config } from "#config";
import type { AsOwner } from "#postgres/database";
import { type CronJobOptions, CronJobs } from "./cron-jobs.ts";
import { type HttpRequestOptions, HttpRequests } from "./http-requests.ts";

type SupabaseJobOptions = Omit<CronJobOptions, "url"> &
  Omit<HttpRequestOptions, "network"> & {
    readonly config: Config;
    readonly url: string;
  };

export type SupabaseJobs = { close(milliseconds: number): Promise<void> };

/** The query finds only the tables of our template; the real extensions work by themselves. */
const FIND_SCHEMAS = `
  select pg_catalog.to_regclass('cron.due_times') is not null as cron,
    exists (select from pg_catalog.pg_class where oid = pg_catalog.to_regclass('net.http_request_queue')
      and relowner = pg_catalog.to_regrole(pg_catalog.quote_ident(current_user))
      and not exists (select from pg_catalog.pg_extension where extname = 'pg_net')) as net`;

/** Runs the commands of `cron` and sends the requests of `net`, if the database has these schemas. */
export async function startSupabaseJobs({ config, url, ...options }: SupabaseJobOptions): Promise<SupabaseJobs> {
  const found = await findSchemas(options.asOwner);
  const isOn = (api: string) => config.supabaseApis === null || config.supabaseApis.includes(api);
  const jobs: SupabaseJobs[] = [];
  if (found.cron && isOn("cron") && config.runsSchedules) jobs.push(new CronJobs({ ...options, url }));
  if (found.net && isOn("net") && config.sendsWebhooks)
    jobs.push(new HttpRequests({ ...options, network: config.webhookNetwork }));
  return {
    async close(milliseconds) {
      await Promise.all(jobs.map((job) => job.close(milliseconds)));
    },
  };
}

async function findSchemas(asOwner: AsOwner): Promise<{ readonly cron: boolean; readonly net: boolean }> {
  const { rows } = await asOwner((client) => client.query<{ cron: boolean; net: boolean }>(FIND_SCHEMAS));
  return rows[0]!;
}
