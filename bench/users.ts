// The conventional interface's users over HTTP, beside pgbench with the same statements and a server with Drizzle.

import type { Bench } from "./bench.ts";
import { compare } from "./comparison/compare.ts";
import { judge } from "./comparison/targets.ts";
import { startContent } from "./graphql/content.ts";
import { requirePgbench } from "./pgbench.ts";
import { printPreface } from "./preface.ts";
import { startInstalled } from "./start-installed.ts";
import { SERVERS, startOurs } from "./users/servers.ts";
import { PREPARATION, TARGETS, WORKS } from "./users/works.ts";

export const bench: Bench = async (options) => {
  const { print } = options;
  print("users: the resource interface over HTTP, row-level security on, callers by token");
  const version = await requirePgbench().catch((error: Error) => print(`pgbench skipped: ${error.message}`));
  printPreface(options, SERVERS);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  await scratch.execute(PREPARATION);
  const { started: servers } = opened.use(await startInstalled(SERVERS, scratch));
  const hasPgbench = version !== undefined;
  const outcomes = await compare({ works: WORKS, scratch, copier: null, servers, hasPgbench, startOurs }, options);
  print("  targets");
  for (const verdict of judge(outcomes, TARGETS)) print(verdict);
  return { version, outcomes };
};
