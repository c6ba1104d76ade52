import { readFile, writeFile } from "node:fs/promises";
import { arch, cpus, loadavg, release, totalmem, type } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { EXIT_FAILURE, EXIT_USAGE } from "#service/command";
import { SCHEMAS } from "./catalogue/schemas.ts";
import { benchmarkChart } from "./chart.ts";
import { KINDS } from "./failover/kinds.ts";
import { FAULTS } from "./faults/kinds.ts";
import { ATTACK_NAMES, ATTACKS } from "./hostile/attacks/attacks.ts";
import { LIVE_KINDS } from "./live/live-kinds.ts";
import type { Bench } from "./measuring/kind.ts";
import { watchStolenTime } from "./measuring/processor-time.ts";

const BENCHES: Readonly<Record<string, () => Promise<{ readonly bench: Bench }>>> = {
  engine: () => import("./engine.ts"),
  rest: () => import("./rest.ts"),
  users: () => import("./users.ts"),
  graphql: () => import("./graphql.ts"),
  realtime: () => import("./realtime.ts"),
  start: () => import("./start.ts"),
  newcomer: () => import("./newcomer.ts"),
  live: () => import("./live.ts"),
  batch: () => import("./batch.ts"),
  mcp: () => import("./mcp.ts"),
  pool: () => import("./pool.ts"),
  cores: () => import("./cores.ts"),
  soak: () => import("./soak.ts"),
  catalogue: () => import("./catalogue.ts"),
  hostile: () => import("./hostile.ts"),
  failover: () => import("./failover.ts"),
  faults: () => import("./faults.ts"),
  "storage-faults": () => import("./storage-faults.ts"),
  storage: () => import("./storage.ts"),
  webhooks: () => import("./webhooks.ts"),
  archives: () => import("./archives.ts"),
  large: () => import("./large.ts"),
  policies: () => import("./policies.ts"),
  queue: () => import("./queue.ts"),
  citus: () => import("./citus.ts"),
};

const STORAGE_FAULT_PARTS = { folder: true, s3: true };
const SOAK_PARTS = { half: true, snapshots: true };
const CITUS_PARTS = { migrate: true, journeys: true };
const ARCHIVE_PARTS = { schemas: true, speed: true, branch: true };

/** The benchmarks that run by default. The others take long, and run only by name. */
const BY_DEFAULT = ["engine", "rest", "users", "graphql", "realtime", "live", "start"];

/** The path of the chart, next to the page with the figures. */
const CHART = "pictures/benchmarks.svg";
const PAGE = join(import.meta.dirname, "../docs/benchmarks.md");

const USAGE = `npm run bench -- [NAME…] [--rounds 5] [--seconds 1] [--json FILE] [--markdown FILE]
  without a name: ${BY_DEFAULT.join(", ")}
  --markdown docs/benchmarks.md also draws docs/${CHART}
  chart: draws it again from the recorded figures, without measuring
  start: a first start in an empty folder and a later one, and the memory of a service and of a worker at rest
  newcomer: from the tarball to a row in Studio that a second user sees, with Chromium; fails if it takes more than 45 s
  live [--clients 1000] [--only queries|graphql|shapes]…: live queries, over GraphQL too, and as many shapes, each of a caller of its
    own: from an update to the client, changes a second, memory of each
  batch: inserts in a batch beside the same as single requests
  mcp: calls of tools beside the same requests of the table interface
  pool: short reads beside many connections, slow statements and a locked table
  cores: one row by key with all workers and with one process, with few, many and idle connections
  soak [--minutes 5] [--only half|snapshots]…: mixed load on all interfaces; reports growth of memory, at half the load, and by objects
  webhooks [--seconds 5]: a backlog of 200,000 events, and 10,000 a second; fails if a receiver gets a key's events out of order
  queue [--tasks 1000000]: a backlog of queued calls, run by one process; fails below 1,000 a second, or if one is lost
  catalogue [--only SCHEMA]…: startup and DDL with many tables
    schemas: ${Object.keys(SCHEMAS).join(", ")}; gitlab without --only
  archives [--only schemas|speed|branch] [--versions 14,15,16,17,18] [--schemas 500] [--seed 1] [--megabytes 1000]: backups of random
    schemas on each version of Postgres, and of a large database beside pg_dump; branches of one, and starts on them; fails if a
    restored database differs
  large [--megabytes 1000]: pages, counts and an export of a table of that size, as JSON; fails if the service's memory grows with it
  policies: counts, pages and searches of a million rows, by policies as they are often written and in the form that doctor gives
  citus [--only migrate|journeys]…: requests of all interfaces as three tenants on the database that CITUS_URL names, as its superuser, or
    on Postgres without Citus; creates the schema citus_journeys and three roles; fails if a result is refused, empty or another tenant's.
    migrate: applies our migrations first, and looks for the functions and roles on all workers; journeys without --only
  hostile [--only ATTACK]…: attacks beside honest traffic; fails if honest callers are affected or the memory limit is exceeded
    attacks: ${ATTACK_NAMES.join(", ")}
  failover [--minutes 5] [--every 20] [--only KIND]…: ends the leader of a Patroni cluster under load; fails if an acknowledged write is lost
    kinds: ${Object.keys(KINDS).join(", ")}
  faults [--rounds 5] [--only FAULT]…: kills and other faults under load; fails if anything is lost, doubled, or still broken after a minute
    faults: ${Object.keys(FAULTS).join(", ")}
  storage: uploads and downloads of 1 KB, 1 MB and 100 MB beside nginx, and the memory of 1 GB
  storage-faults [--rounds 5] [--only folder|s3]…: 100 kills a round at random moments of uploads, moves and deletes; fails if a row is
    without its file, a file stays after collection, or an acknowledged upload is lost`;

const { values, positionals } = readWords();
if (values.help) {
  console.log(USAGE);
  process.exit();
}
if (positionals.includes("chart")) {
  await drawChart(PAGE);
  process.exit();
}
const unknown = positionals.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) refuse(`No such benchmark: ${unknown.join(", ")}`);
const PARTS: Readonly<Record<string, object>> = {
  catalogue: SCHEMAS,
  live: LIVE_KINDS,
  failover: KINDS,
  faults: FAULTS,
  "storage-faults": STORAGE_FAULT_PARTS,
  soak: SOAK_PARTS,
  archives: ARCHIVE_PARTS,
  citus: CITUS_PARTS,
};
const parts = positionals.map((name) => PARTS[name]).find((named) => named !== undefined) ?? ATTACKS;
const unknownParts = values.only.filter((name) => !Object.hasOwn(parts, name));
if (unknownParts.length > 0) refuse(`--only does not know ${unknownParts.join(", ")}`);

const amounts = {
  rounds: amountOf("rounds"),
  // pgbench only measures whole seconds.
  seconds: amountOf("seconds"),
  minutes: amountOf("minutes"),
  every: amountOf("every"),
  only: values.only,
  versions: values.versions.split(",").map((version) => wholeNumber("versions", version)),
  schemas: amountOf("schemas"),
  seed: amountOf("seed"),
  megabytes: amountOf("megabytes"),
  tasks: amountOf("tasks"),
  clients: amountOf("clients"),
};
const [loadBefore] = loadavg();
const stolen = await watchStolenTime();
const records: BenchRecord[] = [];
for (const name of positionals.length > 0 ? positionals : BY_DEFAULT) {
  const { bench } = await BENCHES[name]!();
  const lines: string[] = [];
  const result = await bench({
    ...amounts,
    print(line) {
      console.log(line);
      lines.push(line);
    },
  });
  records.push({ name, result, lines });
  if (result.isMissed) process.exitCode = EXIT_FAILURE;
}
if (values.json) {
  const results = Object.fromEntries(records.map(({ name, result }) => [name, result]));
  await writeFile(values.json, `${JSON.stringify(results, null, 2)}\n`);
}
if (values.markdown) {
  const command = ["npm run bench --", ...process.argv.slice(2)].join(" ");
  await writeFile(
    values.markdown,
    benchmarksPage(records, { command, at: new Date(), loadBefore: loadBefore!, stolen: await stolen() }),
  );
  if (positionals.length === 0) await drawChart(values.markdown);
}

async function drawChart(page: string): Promise<void> {
  await writeFile(join(dirname(page), CHART), benchmarkChart(await readFile(page, "utf8")));
}

function readWords() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "1" },
        minutes: { type: "string", default: "5" },
        every: { type: "string", default: "20" },
        only: { type: "string", multiple: true, default: [] },
        versions: { type: "string", default: "14,15,16,17,18" },
        schemas: { type: "string", default: "500" },
        seed: { type: "string", default: "1" },
        megabytes: { type: "string", default: "1000" },
        tasks: { type: "string", default: "1000000" },
        clients: { type: "string", default: "1000" },
        json: { type: "string" },
        markdown: { type: "string" },
      },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function amountOf(
  option: "rounds" | "seconds" | "minutes" | "every" | "schemas" | "seed" | "megabytes" | "tasks" | "clients",
): number {
  return wholeNumber(option, values[option]);
}

function wholeNumber(option: string, text: string): number {
  return /^[1-9]\d*$/.test(text) ? Number(text) : refuse(`--${option} takes a whole number from 1 on, not ${text}`);
}

function refuse(reason: string): never {
  console.error(reason);
  console.error(USAGE);
  process.exit(EXIT_USAGE);
}

type BenchRecord = { readonly name: string; readonly result: object; readonly lines: readonly string[] };

type Run = { readonly command: string; readonly at: Date; readonly loadBefore: number; readonly stolen: string };

/** Returns `docs/benchmarks.md`: the conditions, then the output of each benchmark. */
function benchmarksPage(records: readonly BenchRecord[], { command, at, loadBefore, stolen }: Run): string {
  const day = at.toISOString().slice(0, 10);
  const [processor] = cpus();
  return `# Benchmarks

One run of this command wrote it on ${day}:

\`\`\`sh
${command}
\`\`\`

- Machine: ${cpus().length} x ${processor!.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()} (${arch()}), Node ${process.versions.node}.
- Load average before: ${loadBefore.toFixed(1)}; after: ${loadavg()[0]!.toFixed(1)}. Other virtual machines took ${stolen} of the processors' time.
- Client, service and Postgres share the processors, so rates are lower than on separate machines. Ratios are medians of the rounds; differences below 5 % are noise.

![Requests per second of this service and of others](pictures/benchmarks.svg)

*Ours is* this service's rate divided by the peer's, with equal responses, the same Postgres and as many connections; *by time*, the peer's processor time, with that of Postgres, divided by this service's.

${records.map(section).join("\n\n")}
`;
}

function section({ name, lines }: BenchRecord): string {
  return `## ${name}\n\n\`\`\`text\n${lines.join("\n").trim()}\n\`\`\``;
}
