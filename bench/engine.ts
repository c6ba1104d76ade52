// Benchmarks the database layer alone, without HTTP: the cost of one round trip as a caller, beside pgbench and beside pg, plain and in
// its pipeline mode.

import pg from "pg";
import { type Database, openDatabase } from "#postgres/database";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { pgbench, requirePgbench } from "./measuring/pgbench.ts";
import { CALLER, ITEMS, OWNERS, SCHEMA } from "./measuring/schema.ts";
import { startScratch } from "./measuring/scratch.ts";

const TARGET = 0.7;
const CALLERS = 16;
const PG_CONNECTIONS = 8;
const STATEMENT_TIMEOUT = "30000";
const CLAIMS = JSON.stringify({ sub: CALLER, name: "Bench", role: "authenticated", iss: "bench", exp: 1_999_999_999 });

type EngineWork = {
  readonly name: string;
  readonly readOnly: boolean;
  /** The statement; each run draws a new value for `$1` here and `:value` in pgbench. */
  readonly text: string;
  /** The best number of pgbench clients: commits share a flush, reads compete for the processors. */
  readonly pgbenchClients: number;
};

const WORKS: readonly EngineWork[] = [
  {
    name: "one row by key",
    readOnly: true,
    text: "select count(*), coalesce(json_agg(item), '[]')::text from (select * from public.items where id = $1) item",
    pgbenchClients: 8,
  },
  {
    name: "20 rows with an embed",
    readOnly: true,
    text:
      "select count(*), coalesce(json_agg(item), '[]')::text from (select id, title, created_at, (select " +
      "coalesce(json_agg(comment), '[]') from (select id, content from public.comments where item_id = items.id) comment" +
      ") as comments from public.items where id > $1 order by id limit 20) item",
    pgbenchClients: 8,
  },
  {
    name: "insert one row",
    readOnly: false,
    text:
      "with new as (insert into public.events (kind, payload) values ('bench', json_build_object('n', $1::int)) " +
      "returning *) select count(*), coalesce(json_agg(new), '[]')::text from new",
    pgbenchClients: 16,
  },
];

const SETTINGS: readonly (readonly [string, string])[] = [["request.jwt.claims", CLAIMS]];
const drawValue = () => String(OWNERS * Math.floor((Math.random() * ITEMS) / OWNERS));

function settingsOf({ readOnly }: EngineWork): (readonly [string, string])[] {
  const readOnlyToo = readOnly ? [["transaction_read_only", "on"] as const] : [];
  return [["role", "authenticated"], ["statement_timeout", STATEMENT_TIMEOUT], ...readOnlyToo, ...SETTINGS];
}

function pgbenchScript(work: EngineWork): string {
  const settings = settingsOf(work).map(([name, value]) => `set_config('${name}', '${value}', true)`);
  return `
\\set n random(0, ${ITEMS / OWNERS - 1})
\\set value :n * ${OWNERS}
\\startpipeline
select ${settings.join(", ")};
${work.text.replace("$1", ":value")};
\\endpipeline
`;
}

/** Runs a request like a simple program: with a round trip for each step. */
async function runByPool(pool: pg.Pool, work: EngineWork): Promise<unknown> {
  const settings = settingsOf(work);
  const list = settings.map((_, index) => `set_config($${2 * index + 1}, $${2 * index + 2}, true)`);
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query({ name: `settings ${settings.length}`, text: `select ${list}`, values: settings.flat() });
    const result = await client.query({ name: work.name, text: work.text, values: [drawValue()] });
    await client.query("commit");
    return result;
  } finally {
    client.release();
  }
}

/** Runs the same steps in one round trip, in pg's pipeline mode. Callers share the clients: a failure rolls back its own transaction only. */
async function runByPipeline(client: pg.Client, work: EngineWork): Promise<unknown> {
  const settings = settingsOf(work);
  const list = settings.map((_, index) => `set_config($${2 * index + 1}, $${2 * index + 2}, true)`);
  const steps = [
    client.query("begin"),
    client.query({ name: `settings ${settings.length}`, text: `select ${list}`, values: settings.flat() }),
    client.query({ name: work.name, text: work.text, values: [drawValue()] }),
    client.query("commit"),
  ];
  const [, , result] = await Promise.all(steps);
  return result;
}

/** Opens clients that requests use in turn. */
async function openPipelines(connectionString: string) {
  const config: pg.ClientConfig & { readonly pipeline: true } = { connectionString, pipeline: true };
  const clients = Array.from({ length: PG_CONNECTIONS }, () => new pg.Client(config));
  for (const client of clients) client.on("error", () => {});
  await Promise.all(clients.map((client) => client.connect()));
  let turn = 0;
  return {
    next: () => clients[turn++ % clients.length]!,
    close: () => Promise.all(clients.map((client) => client.end())),
  };
}

function runByEngine(database: Database, { text, readOnly }: EngineWork): Promise<unknown> {
  const context = { role: "authenticated", settings: SETTINGS };
  return database.run(context, { text, values: [drawValue()] }, { readOnly });
}

/** Returns the requests per second of callers that send their next request as soon as they have a response. */
async function measure(seconds: number, request: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  const end = start + 1_000 * seconds;
  let count = 0;
  const caller = async () => {
    for (; performance.now() < end; count++) await request();
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return (1_000 * count) / (performance.now() - start);
}

type Way = "pgbench" | "engine" | "explicit" | "statements" | "pool" | "pipeline";
type EngineSample = { readonly rate: number; readonly nodeTime: number; readonly postgresTime: number | null };

export const bench: Bench = async ({ rounds, seconds, print }) => {
  const version = await requirePgbench();
  print(`engine: one round trip as a caller, row-level security on, no HTTP; ${version}`);
  print(
    `median of ${rounds} rounds of ${seconds} s, pgbench, engine, engine with TRANSACTION_MODE=explicit and with CALLER_SETTINGS=statements, pg.Pool, and pg in pipeline mode in turn\n`,
  );
  await using scratch = await startScratch(SCHEMA);
  const url = scratch.url("authenticator");
  const options = { url, ownerUrl: scratch.url("postgres"), log: { info() {}, warn() {} } };
  const database = openDatabase(options);
  const explicit = openDatabase({ ...options, transactionMode: "explicit" });
  const statements = openDatabase({ ...options, settingMode: "statements" });
  const pool = new pg.Pool({ connectionString: url, max: PG_CONNECTIONS });
  // pool.end() does not wait for the sockets, so they see the server stop.
  pool.on("error", () => {});
  const pipelines = await openPipelines(url);

  const timed = async (run: () => Promise<number>): Promise<EngineSample> => {
    const [node, postgres] = [process.cpuUsage(), await scratch.processorTime()];
    const rate = await run();
    const { user, system } = process.cpuUsage(node);
    const later = await scratch.processorTime();
    const requests = rate * seconds;
    const postgresTime = postgres === null || later === null ? null : (later - postgres) / requests;
    return { rate, nodeTime: (user + system) / requests, postgresTime };
  };

  const results = [];
  for (const work of WORKS) {
    const script = pgbenchScript(work);
    const byPgbench = () => pgbench({ url, script, clients: work.pgbenchClients, seconds });
    const byEngine = () => measure(seconds, () => runByEngine(database, work));
    const byExplicit = () => measure(seconds, () => runByEngine(explicit, work));
    const byStatements = () => measure(seconds, () => runByEngine(statements, work));
    const byPool = () => measure(seconds, () => runByPool(pool, work));
    const byPipeline = () => measure(seconds, () => runByPipeline(pipelines.next(), work));
    for (const each of [database, explicit, statements]) await measure(0.5, () => runByEngine(each, work));
    await measure(0.5, () => runByPool(pool, work));
    await measure(0.5, () => runByPipeline(pipelines.next(), work));

    const samples: Readonly<Record<Way, EngineSample>>[] = [];
    for (let round = 0; round < rounds; round++) {
      samples.push({
        pgbench: await timed(byPgbench),
        engine: await timed(byEngine),
        explicit: await timed(byExplicit),
        statements: await timed(byStatements),
        pool: await timed(byPool),
        pipeline: await timed(byPipeline),
      });
    }
    const result = {
      work: work.name,
      toPgbench: median(samples.map(({ engine, pgbench }) => engine.rate / pgbench.rate)),
      toPool: median(samples.map(({ engine, pool }) => engine.rate / pool.rate)),
      toPipeline: median(samples.map(({ engine, pipeline }) => engine.rate / pipeline.rate)),
      explicitToImplicit: median(samples.map((each) => processorTime(each.explicit) / processorTime(each.engine))),
      statementsToImplicit: median(samples.map((each) => processorTime(each.statements) / processorTime(each.engine))),
      engine: summary(samples.map(({ engine }) => engine)),
      explicit: summary(samples.map(({ explicit }) => explicit)),
      statements: summary(samples.map((each) => each.statements)),
      pgbench: summary(samples.map(({ pgbench }) => pgbench)),
      pool: summary(samples.map(({ pool }) => pool)),
      pipeline: summary(samples.map(({ pipeline }) => pipeline)),
    };
    results.push(result);
    print(describe(result));
  }
  await Promise.all([database.close(), explicit.close(), statements.close()]);
  await pool.end();
  await pipelines.close();

  const worst = Math.min(...results.map(({ toPgbench }) => toPgbench));
  print(`target ${TARGET.toFixed(2)} of pgbench: ${worst >= TARGET ? "met" : "MISSED"} (${worst.toFixed(2)} at worst)`);
  return { target: TARGET, results };
};

/** Returns the processor time of both processes for one request. */
function processorTime({ nodeTime, postgresTime }: EngineSample): number {
  return nodeTime + (postgresTime ?? 0);
}

function summary(samples: readonly EngineSample[]) {
  const postgresTimes = samples.map(({ postgresTime }) => postgresTime).filter((time) => time !== null);
  return {
    requestsPerSecond: Math.round(median(samples.map(({ rate }) => rate))),
    nodeMicroseconds: median(samples.map(({ nodeTime }) => nodeTime)),
    postgresMicroseconds: postgresTimes.length > 0 ? median(postgresTimes) : null,
  };
}

type Summary = ReturnType<typeof summary>;

function describe(result: {
  readonly work: string;
  readonly toPgbench: number;
  readonly toPool: number;
  readonly toPipeline: number;
  readonly explicitToImplicit: number;
  readonly statementsToImplicit: number;
  readonly engine: Summary;
  readonly explicit: Summary;
  readonly statements: Summary;
  readonly pgbench: Summary;
  readonly pool: Summary;
  readonly pipeline: Summary;
}): string {
  const line = (name: string, { requestsPerSecond, nodeMicroseconds, postgresMicroseconds }: Summary) => {
    const times = [
      ...(name === "pgbench" ? [] : [`node ${nodeMicroseconds.toFixed(1)} µs`]),
      ...(postgresMicroseconds === null ? [] : [`postgres ${postgresMicroseconds.toFixed(1)} µs`]),
    ];
    return `    ${name.padEnd(11)} ${String(requestsPerSecond).padStart(6)}/s   processor time per request: ${times.join(", ")}`;
  };
  return [
    `  ${result.work}: ${result.toPgbench.toFixed(2)} of pgbench, ${result.toPool.toFixed(1)} times pg.Pool with BEGIN … COMMIT, ${result.toPipeline.toFixed(1)} times pg in pipeline mode`,
    line("engine", result.engine),
    `${line("explicit", result.explicit)}, ${result.explicitToImplicit.toFixed(2)} of the engine's`,
    `${line("statements", result.statements)}, ${result.statementsToImplicit.toFixed(2)} of the engine's`,
    line("pgbench", result.pgbench),
    line("pg.Pool", result.pool),
    line("pg pipeline", result.pipeline),
    "",
  ].join("\n");
}
