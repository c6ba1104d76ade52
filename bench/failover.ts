// Ends Patroni's leader repeatedly under load, once for each route to it: no acknowledged write may be lost.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runMigrations } from "#migrate";
import { type Failover, type Findings, findingsOf } from "./failover/findings.ts";
import { startGateway } from "./failover/gateway.ts";
import { KINDS, type Kind, kindsOf } from "./failover/kinds.ts";
import { MARKS } from "./failover/marks.ts";
import {
  isInstalled,
  MISSING,
  type PatroniCluster,
  type Settings,
  startPatroniCluster,
} from "./failover/patroni-cluster.ts";
import { describeRestart, isWithoutFault, restartGateways } from "./failover/rolling-restart.ts";
import { startTraffic, type Traffic } from "./failover/traffic.ts";
import { freePort } from "./measuring/free-port.ts";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";

const LOOK_MS = 20;
/** The maximum time for all steps besides Patroni's own. */
const MOST_MS_OF_OURS = 1_000;

type FailoverRun = {
  readonly failovers: readonly Failover[];
  readonly findings: Readonly<Record<string, Findings>>;
  /** The number of times that a standby could no longer follow and was copied again. */
  readonly copies: number;
  /** The ends of gateways that should still be running. */
  readonly ended: readonly string[];
};

export const bench: Bench = async ({ minutes, every, only, print }) => {
  if (!isInstalled) {
    print(`failover: ${MISSING}`);
    return {};
  }
  print(`failover: the leader of three Patroni nodes is ended every ${every} s for ${minutes} min, under load`);
  await using cluster = await startPatroniCluster();
  await prepareDatabase(cluster);
  const run = await runFailovers(cluster, { seconds: minutes * 60, every, kinds: kindsOf(only), print });
  for (const line of describe(run)) print(line);
  const restart = await restartGateways(cluster);
  for (const line of describeRestart(restart)) print(line);
  return { ...run, restart, isMissed: Object.keys(faultsOf(run)).length > 0 || !isWithoutFault(restart) };
};

type Options = {
  readonly seconds: number;
  readonly every: number;
  readonly kinds: readonly Kind[];
  readonly print: (line: string) => void;
};

/** Ends the leader repeatedly, with one gateway and its clients for each route to it. */
export async function runFailovers(cluster: PatroniCluster, options: Options): Promise<FailoverRun> {
  await using opened = new AsyncDisposableStack();
  const routes: Readonly<Record<string, Settings>> = { "several hosts": cluster.hosts, HAProxy: cluster.haproxy };
  const served = await Promise.all(
    Object.entries(routes).map(async ([route, settings]) => {
      const log = join(cluster.folder, `gateway ${route}.log`);
      const gateway = opened.use(await startGateway(settings, await freePort(), log));
      const traffic = opened.adopt(await startTraffic(gateway.url, route), (each) => each.close());
      return { route, gateway, traffic };
    }),
  );
  const failovers = await endLeaders(cluster, options);
  await Promise.all(served.map(({ traffic }) => traffic.quiet()));
  await cluster.healthy();
  const findings: Record<string, Findings> = {};
  for (const { route, traffic } of served) findings[route] = await checkRows(cluster, traffic, failovers);
  const ended = served.flatMap(({ route, gateway }) => (gateway.exitCode() === null ? [] : [route]));
  return { failovers, findings, copies: await cluster.copies(), ended };
}

export async function prepareDatabase(cluster: PatroniCluster): Promise<void> {
  const url = cluster.haproxy.OWNER_DATABASE_URL!;
  const other = (database: string) => url.replace(/\/content$/, `/${database}`);
  await runMigrations({ name: "migrate" }, { url, rootUrl: other("postgres"), shadowUrl: other("shadow") });
  await cluster.execute(MARKS);
}

async function endLeaders(cluster: PatroniCluster, { seconds, every, kinds, print }: Options): Promise<Failover[]> {
  const failovers: Failover[] = [];
  const end = Date.now() + seconds * 1_000;
  while (Date.now() < end) {
    const kind = kinds[failovers.length % kinds.length]!;
    await cluster.healthy();
    const at = Date.now();
    const promotedAt = await endLeader(cluster, kind);
    print(`  ${new Date(at).toISOString().slice(11, 19)} ${kind}: another leader after ${promotedAt - at} ms`);
    await sleep(at + every * 1_000 - Date.now());
    const sessionsOnStandbys = await cluster.sessionsOnStandbys();
    failovers.push({ kind, at, promotedAt, until: Date.now(), sessionsOnStandbys });
  }
  return failovers;
}

/** Resolves with the time at which another node accepts writes, and the former leader does not. */
async function endLeader(cluster: PatroniCluster, kind: Kind): Promise<number> {
  const former = await anyLeader(cluster);
  if (kind === "switchover") {
    const handover = cluster.switchover(former);
    const promotedAt = await nextLeader(cluster, former);
    await handover;
    return promotedAt;
  }
  await cluster.kill(former, kind === "patroni" ? "patroni" : "node");
  if (kind === "patroni") return nextLeader(cluster, former);
  if (kind === "successor") {
    const rewinding = cluster.rewinding(former);
    const successor = await anyLeader(cluster);
    await rewinding;
    await cluster.kill(successor, "node");
  }
  // A killed node can only become the leader again after a restart.
  await anyLeader(cluster);
  return Date.now();
}

async function anyLeader(cluster: PatroniCluster): Promise<string> {
  for (;;) {
    const leader = await cluster.leader();
    if (leader !== null) return leader;
    await sleep(LOOK_MS);
  }
}

async function nextLeader(cluster: PatroniCluster, former: string): Promise<number> {
  while ((await anyLeader(cluster)) === former) await sleep(LOOK_MS);
  return Date.now();
}

/** Compares the rows when the last one has arrived, which comes after all others. */
async function checkRows(cluster: PatroniCluster, traffic: Traffic, failovers: readonly Failover[]): Promise<Findings> {
  const last = -1;
  await cluster.execute(`insert into marks (number, note) values (${last}, '${traffic.label}')`);
  while (traffic.subscribers.some(({ received }) => !received.has(last))) await sleep(LOOK_MS);
  const { rows } = await cluster.execute(
    `select number, count(*)::int as count from marks where note = '${traffic.label}' group by number`,
  );
  const stored = new Map<number, number>(rows.map(({ number, count }) => [Number(number), count]));
  return findingsOf(traffic, stored, failovers);
}

/** Returns the faults that occurred, with their number. */
export function faultsOf({ failovers, findings, ended }: FailoverRun): Record<string, number> {
  const counts = Object.entries(findings).flatMap(
    ([route, { lost, duplicates, refusedAndWritten, hanging, repeated, missedSilently, invented }]) =>
      Object.entries({ lost, duplicates, refusedAndWritten, hanging, repeated, missedSilently, invented }).map(
        ([name, count]): [string, number] => [`${route}: ${name}`, count],
      ),
  );
  const sessions = failovers.reduce((sum, { sessionsOnStandbys }) => sum + sessionsOnStandbys, 0);
  const all = [...counts, ["sessions on standbys", sessions], ["gateways that ended", ended.length]] as const;
  return Object.fromEntries(all.filter(([, count]) => count > 0));
}

const seconds = (milliseconds: number) => `${(milliseconds / 1_000).toFixed(1)} s`;
const spread = (values: readonly number[]) =>
  values.length === 0 ? "-" : `${seconds(median(values))} / ${seconds(Math.max(...values))}`;

/** Returns a Markdown table for docs/high-availability.md. */
export function describe({ failovers, findings, copies, ended }: FailoverRun): string[] {
  const routes = Object.keys(findings);
  const row = (name: string, cell: (found: Findings) => string | number) =>
    `| ${name} | ${routes.map((route) => cell(findings[route]!)).join(" | ")} |`;
  const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => failovers.some((failover) => failover.kind === kind));
  const own = (kind: Kind) => failovers.filter((each) => each.kind === kind).map((each) => each.promotedAt - each.at);
  const of = (values: readonly number[], kind: Kind) => values.filter((_, index) => failovers[index]!.kind === kind);
  return [
    `| | ${routes.join(" | ")} |`,
    `| --- |${" --- |".repeat(routes.length)}`,
    ...kinds.flatMap((kind) => [
      row(`${KINDS[kind]}: times`, () => own(kind).length),
      row(`${kind}: until another leader, Patroni's own (median / worst)`, () => spread(own(kind))),
      row(`${kind}: without writes (median / worst)`, (found) => spread(of(found.withoutWrites, kind))),
      row(`${kind}: from the new leader to the first write (median / worst)`, (found) =>
        spread(of(found.untilFirstWrite, kind)),
      ),
      row(
        `${kind}: first write more than 1 s after the new leader`,
        (found) => of(found.untilFirstWrite, kind).filter((each) => each > MOST_MS_OF_OURS).length,
      ),
    ]),
    row("acknowledged writes", (found) => found.acknowledged),
    row("of these lost", (found) => found.lost),
    row("written twice under an `Idempotency-Key`", (found) => found.duplicates),
    row("refused as not written, and written", (found) => found.refusedAndWritten),
    row("requests without a response", (found) => found.hanging),
    row(
      "reads while there was no leader: served / refused",
      (found) => `${found.reads - found.failedReads} / ${found.failedReads}`,
    ),
    row("row changes received", (found) => found.received),
    row("received twice", (found) => found.repeated),
    row("gaps told", (found) => found.gapsTold),
    row("changes missed and told", (found) => found.missedAndTold),
    row("changes missed silently", (found) => found.missedSilently),
    row("changes received that were not committed", (found) => found.invented),
    row("sessions left on a standby", () => failovers.reduce((sum, each) => sum + each.sessionsOnStandbys, 0)),
    row("standbys that could not follow and were copied again", () => copies),
    row("gateways that ended", () => ended.length),
    ...routes.flatMap((route) =>
      Object.entries(findings[route]!.failures).map(([failure, times]) => `  ${route}: ${times} x ${failure}`),
    ),
    ...routes.flatMap((route) => findings[route]!.details.map((detail) => `  ${route}: ${detail}`)),
  ];
}
