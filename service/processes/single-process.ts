import { startPostgres } from "#cluster";
import type { Config } from "#config";
import { checkListenAddress } from "#http/serving";
import type { RunningService, ServiceOptions } from "../service.ts";

/** Runs the service in this process. Its modules are loaded while Postgres starts, on another processor. */
export async function startSingleProcess(config: Config, options: ServiceOptions): Promise<RunningService> {
  await checkListenAddress(config);
  const startingPostgres = startPostgres(config, options.report, options.onFatalError);
  // An error is reported when the service waits for it.
  startingPostgres.catch(() => {});
  const { startService } = await import("../service.ts");
  return startService(config, { ...options, startingPostgres });
}
