// Benchmarks the users of the conventional interface over HTTP, beside pgbench with the same statements and a server with Drizzle.

import { existsSync } from "node:fs";
import { compare } from "./comparison/compare.ts";
import { OURS, startOurs as startService } from "./comparison/ours.ts";
import { startPeer } from "./comparison/peer.ts";
import type { MeasuredServer, ServerLauncher } from "./comparison/program.ts";
import { PGBENCH } from "./comparison/runners.ts";
import { judge, type Targets } from "./comparison/targets.ts";
import { READ, type Work } from "./comparison/work.ts";
import { startContent, USERS } from "./graphql/content.ts";
import type { Bench } from "./measuring/kind.ts";
import { peerPackage } from "./measuring/peer-package.ts";
import { requirePgbench } from "./measuring/pgbench.ts";
import type { Scratch } from "./measuring/scratch.ts";
import { printPreface } from "./preface.ts";
import { startInstalled } from "./start-installed.ts";

const DRIZZLE = "Express + Drizzle";

export const SERVERS: readonly ServerLauncher[] = [
  { name: OURS, isInstalled: true, start: (scratch) => startOurs(scratch, scratch.url("authenticator")) },
  {
    name: DRIZZLE,
    isInstalled: existsSync(peerPackage("drizzle-orm")),
    start: (scratch) => startPeer(scratch, { name: DRIZZLE, file: "peers/drizzle.mjs" }),
  },
];

export function startOurs(scratch: Pick<Scratch, "url">, url: string): Promise<MeasuredServer> {
  return startService(scratch, url, { prefix: "/" });
}

/** User 0 exists because drawn ids begin at 0. pgbench needs USAGE because its statements are parsed before it takes a role. */
const PREPARATION = `
  insert into users (id, name, email) overriding system value values (0, 'User 0', 'user0@example.org');
  grant usage on schema public to authenticator;`;

export const WORKS: readonly Work[] = [
  {
    ...READ,
    name: "one user",
    path: { tables: "/users/{n}", handlers: "/users/{n}" },
    drawn: { step: 1, count: USERS },
  },
  { ...READ, name: "10 users", path: { tables: "/users", handlers: "/users" } },
];

const TARGET = [
  { than: PGBENCH, least: 0.5 },
  { than: DRIZZLE, least: 3 },
];
export const TARGETS: Targets = { "one user": TARGET, "10 users": TARGET };

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
