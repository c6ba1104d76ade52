// The conventional interface's users over HTTP, beside pgbench with the same statements and a server with Drizzle.

import type { Bench } from "./bench.ts";
import { compare } from "./contest/compare.ts";
import { judge } from "./contest/targets.ts";
import { startContent } from "./graphql/content.ts";
import { requirePgbench } from "./pgbench.ts";
import { tellPreface } from "./preface.ts";
import { startInstalled } from "./start-installed.ts";
import { ENTRANTS, startOurs } from "./users/contestants.ts";
import { PREPARATION, TARGETS, WORKS } from "./users/works.ts";

export const bench: Bench = async (options) => {
  const { tell } = options;
  tell("users: the conventional interface over HTTP, row-level security on, callers by token");
  const version = await requirePgbench().catch((error: Error) => tell(`pgbench skipped: ${error.message}`));
  tellPreface(options, ENTRANTS);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  await scratch.execute(PREPARATION);
  const { started: contestants } = opened.use(await startInstalled(ENTRANTS, scratch));
  const hasPgbench = version !== undefined;
  const outcomes = await compare({ works: WORKS, scratch, copier: null, contestants, hasPgbench, startOurs }, options);
  tell("  targets");
  for (const verdict of judge(outcomes, TARGETS)) tell(verdict);
  return { version, outcomes };
};
