import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../engine/embedded/cluster.ts";
import { resuming } from "../../realtime/resuming-socket.ts";
import { Detour } from "../realtime/detour.ts";
import { Gateway } from "../realtime/gateway.ts";
import { type Client, makeClient } from "../realtime/service.ts";
import { until } from "../until.ts";

/** More take as long as they are more, and show the same. */
const CHANGES = Number(process.env.REALTIME_CHANGES ?? 10_000);
const BATCH = 100;

let dataDir: string;
let cluster: Cluster;
let gateway: Gateway;
let detour: Detour;
const clients: Client[] = [];

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "realtime-faults-"));
  await chmod(dataDir, 0o755);
  cluster = await startPostgres();
  await query(`
    create role anon;
    create role authenticator login noinherit;
    grant anon to authenticator;
    create table news (id int primary key);
    alter table news replica identity full;
    grant select on news to anon;
    create publication supabase_realtime for table news`);
  gateway = await startGateway();
  detour = await Detour.to(gateway.port);
});
afterAll(async () => {
  for (const client of clients) await client.realtime.disconnect();
  await detour.close();
  await gateway.stop();
  await cluster.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const startPostgres = () => startCluster({ dataDir, port: null, tell: () => {} });
const startGateway = () =>
  Gateway.start({ url: cluster.url("authenticator", "postgres"), ownerUrl: cluster.url("postgres", "postgres") });

async function query(text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.query(text);
  } finally {
    await client.end().catch(() => {});
  }
}

async function killPostgres(): Promise<void> {
  const [pid] = (await readFile(join(dataDir, "postgres/postmaster.pid"), "utf8")).split("\n");
  process.kill(Number(pid), "SIGKILL");
  await cluster.ended;
  cluster = await startPostgres();
}

async function killGateway(): Promise<void> {
  await gateway.kill();
  gateway = await startGateway();
  detour.leadTo(gateway.port);
}

const cutSockets = async () => detour.cut();
const killBoth = async () => {
  await gateway.kill();
  await killPostgres();
  await killGateway();
};
/** What happens when that part of the changes was made. */
const FAULTS = [
  [0.1, cutSockets],
  [0.2, killGateway],
  [0.35, killPostgres],
  [0.5, cutSockets],
  [0.6, killBoth],
  [0.8, cutSockets],
] as const;

/** What an application is told, in its order: the ids of new rows, and what becomes of its channel. */
async function listen(transport: typeof WebSocket): Promise<(number | string)[]> {
  const told: (number | string)[] = [];
  const client = makeClient(detour.url, null, transport);
  clients.push(client);
  client
    .channel("news")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, ({ new: row }) => told.push(row.id))
    .subscribe((status) => told.push(status));
  await until(() => told.at(-1) === "SUBSCRIBED");
  return told;
}

/** In batches, one transaction each; whether one was committed is what the table says. */
async function makeChanges(): Promise<void> {
  const faults = [...FAULTS];
  let going: Promise<void> = Promise.resolve();
  for (let next = 1; next <= CHANGES; ) {
    if (faults[0] && next >= faults[0][0] * CHANGES) {
      const [, happen] = faults.shift()!;
      await going;
      going = happen();
    }
    await query(`insert into news select generate_series(${next}, ${next + BATCH - 1})`).catch(() => sleep(20));
    const known = await query("select coalesce(max(id), 0) + 1 as next from news").catch(() => null);
    if (known) next = known.rows[0].next;
  }
  await going;
}

/** Those ids that did not come right behind the one before, with what was said in between. */
function gapsIn(
  told: readonly (number | string)[],
): readonly { readonly id: number; readonly said: readonly string[] }[] {
  const gaps: { id: number; said: readonly string[] }[] = [];
  let last = 0;
  let said: string[] = [];
  for (const each of told) {
    if (typeof each === "string") said.push(each);
    else {
      if (each !== last + 1) gaps.push({ id: each, said });
      [last, said] = [each, []];
    }
  }
  return gaps;
}

test(`while Postgres, the gateway and the sockets are killed during ${CHANGES} changes, who resumes misses none, and whoever does not is told of each gap`, async () => {
  const resumed = [];
  for (let count = 0; count < 3; count++) resumed.push(await listen(resuming(WebSocket)));
  const plain = [];
  for (let count = 0; count < 2; count++) plain.push(await listen(WebSocket));

  await makeChanges();
  const { rows } = await query("select id from news order by id");
  for (const told of plain) await until(() => told.findLast((each) => typeof each === "string") === "SUBSCRIBED");
  await query(`insert into news values (${rows.length + 1})`);
  const everything = [...rows.map(({ id }) => id), rows.length + 1];
  for (const told of [...resumed, ...plain]) await until(() => told.includes(rows.length + 1));

  for (const told of resumed) expect(told.filter((each) => typeof each === "number")).toEqual(everything);
  const gaps = plain.flatMap(gapsIn);
  // The control: without resuming there is something to miss.
  expect(gaps.length).toBeGreaterThan(0);
  for (const { said } of gaps) expect(said).toEqual(expect.arrayContaining(["CHANNEL_ERROR", "SUBSCRIBED"]));
  for (const told of plain) {
    const ids = told.filter((each) => typeof each === "number");
    expect(ids).toEqual([...new Set(ids)].sort((one, other) => one - other));
  }
  const missed = plain.map((told) => everything.length - told.filter((each) => typeof each === "number").length);
  console.log(
    `of ${everything.length} changes who resumed missed 0, the others ${missed.join(" and ")} in ${gaps.length} gaps, each announced`,
  );
});
