// The table interface with and without its cache, beside pgbench with the same statements, while rows are written.

import { setTimeout as sleep } from "node:timers/promises";
import { compare } from "./comparison/compare.ts";
import { OURS, startOurs } from "./comparison/ours.ts";
import type { Outcome } from "./comparison/report.ts";
import { PGBENCH } from "./comparison/runners.ts";
import { verdict } from "./comparison/targets.ts";
import { READ, type Work } from "./comparison/work.ts";
import type { Bench } from "./kind.ts";
import { requirePgbench } from "./pgbench.ts";
import { printPreface } from "./preface.ts";
import { startCopier } from "./rest/copy.ts";
import { ONE_ROW } from "./rest/works.ts";
import { OWNERS, SCHEMA } from "./schema.ts";
import { type Scratch, startScratch } from "./scratch.ts";
import { startInstalled } from "./start-installed.ts";

const UNCACHED = "ours without the cache";
/** The rows that are read, and written. */
const READ_ROWS = 100;
/** Of about 5,000 requests a second, one in a hundred. */
const WRITES_PER_SECOND = 50;

const drawn = { step: OWNERS, count: READ_ROWS };
const WORKS: readonly Work[] = [
  { ...ONE_ROW, drawn },
  {
    ...READ,
    name: "20 rows with a many-to-one embed",
    drawn,
    path: {
      tables: "/comments?select=id,content,items(id,title)&id=gt.{n}&order=id&limit=20",
      handlers: "/comments?after={n}",
    },
  },
];
const TARGETS: Readonly<Record<string, number>> = { "one row by key": 1.5, "20 rows with a many-to-one embed": 2.3 };

const SERVERS = [
  {
    name: OURS,
    isInstalled: true,
    start: (scratch: Scratch) => startOurs(scratch, scratch.url("authenticator"), { env: { CACHE: "true" } }),
  },
  {
    name: UNCACHED,
    isInstalled: true,
    start: (scratch: Scratch) => startOurs(scratch, scratch.url("authenticator"), { name: UNCACHED }),
  },
];

export const bench: Bench = async (options) => {
  const { print } = options;
  print(
    `cache: the table interface over HTTP, ${READ_ROWS} rows, ${WRITES_PER_SECOND} writes a second by another program`,
  );
  const version = await requirePgbench().catch((error: Error) => print(`pgbench skipped: ${error.message}`));
  printPreface(options, SERVERS);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(`${SCHEMA} create publication supabase_realtime for all tables;`));
  const copier = opened.use(await startCopier(scratch));
  const { started: servers } = opened.use(await startInstalled(SERVERS, scratch));
  const writing = opened.use(startWriting(scratch));
  const outcomes = await compare(
    { works: WORKS, scratch, copier, servers, hasPgbench: version !== undefined },
    options,
  );
  print("\n  targets");
  for (const line of outcomes.flatMap(judge)) print(line);
  return { version, outcomes, writes: writing.count() };
};

function judge({ work, ratios }: Outcome): string[] {
  const [reached, least] = [ratios[PGBENCH], TARGETS[work]!];
  return reached === undefined
    ? []
    : [verdict(`${work}: ${reached.toFixed(2)} of pgbench`, reached >= least, String(least))];
}

/** Updates one of the rows after the other. */
function startWriting(scratch: Scratch): AsyncDisposable & { count(): number } {
  let count = 0;
  let isOn = true;
  const write = async () => {
    while (isOn) {
      const id = (count++ % READ_ROWS) * OWNERS;
      await scratch.execute(`update items set title = 'Title ${count}' where id = ${id}`);
      await sleep(1000 / WRITES_PER_SECOND);
    }
  };
  const written = write();
  return {
    count: () => count,
    async [Symbol.asyncDispose]() {
      isOn = false;
      await written;
    },
  };
}
