import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runningCluster } from "../../../cluster/embedded/cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { type Program, startReady, stopped } from "../../program.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";

/** A service with an embedded Postgres whose WAL is archived. */
export type ArchivedService = AsyncDisposable & {
  readonly url: string;
  query(statement: string): Promise<Record<string, unknown>[]>;
  /** Resolves to a time of which the rows are as they are now. */
  passTime(): Promise<string>;
};

export async function startArchivedService(settings: NodeJS.ProcessEnv = {}): Promise<ArchivedService> {
  await using opened = new AsyncDisposableStack();
  const root = await mkdtemp(join(tmpdir(), "archived-service-"));
  opened.defer(() => rm(root, { recursive: true, force: true }));
  await chmod(root, 0o755);
  const dataDir = join(root, "data");
  const program: Program = await startReady({
    DATA_DIR: dataDir,
    BACKUP_DIR: join(root, "backups"),
    BACKUP_WAL: "on",
    BACKUP_WAL_RESERVE_MB: "0",
    BASE_SCHEMA: "platform",
    JWT_SECRET: SECRET,
    STUDIO: "open",
    STUDIO_SQL: "on",
    ...settings,
  });
  opened.defer(async () => void (await stopped(program, "SIGTERM")));
  const url = (await runningCluster({ dataDir }))!("postgres", "content");
  const query = async (statement: string) =>
    (await withClient(url, (client) => client.query<Record<string, unknown>>(statement))).rows;
  await until(async () => {
    const { recoverable } = (await (await fetch(`${program.url}/health`)).json()) as { recoverable: object | null };
    return recoverable !== null;
  });
  const serverTime = async () => (await query("select clock_timestamp() as now"))[0]!.now as Date;
  const everything = opened.move();
  return {
    url: program.url,
    query,
    async passTime() {
      const at = new Date((await serverTime()).getTime() + 1);
      await until(async () => (await serverTime()) > at);
      return at.toISOString();
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
