import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Gateway, startGateway } from "./gateway.ts";
import type { PatroniCluster } from "./patroni-cluster.ts";
import { startTraffic } from "./traffic.ts";

const LABEL = "rolling restart";
const NAMES = ["a", "b", "c"];
const SECONDS_BEFORE = 2;
const LOOK_MS = 50;

type RollingRestart = {
  readonly requests: number;
  readonly failures: Readonly<Record<string, number>>;
  /** The number of closed sockets; each subscriber has one at a time. */
  readonly closes: number;
  readonly subscribers: number;
  readonly received: number;
  readonly missed: number;
  readonly repeated: number;
  readonly gapsTold: number;
};

/** Restarts three gateways behind HAProxy one after the other, under load. */
export async function restartGateways(cluster: PatroniCluster): Promise<RollingRestart> {
  await using opened = new AsyncDisposableStack();
  const start = (index: number) =>
    startGateway(
      { ...cluster.hosts, HOST: cluster.gatewayHost, DRAIN_DELAY_SECONDS: "2" },
      cluster.gatewayPorts[index]!,
      join(cluster.folder, `gateway ${NAMES[index]}.log`),
    );
  const gateways: Gateway[] = await Promise.all(NAMES.map((_, index) => start(index)));
  opened.defer(async () => void (await Promise.all(gateways.map((gateway) => gateway.stop()))));
  for (const name of NAMES) await untilState(cluster, name, "UP");
  const traffic = opened.adopt(await startTraffic(cluster.gatewayUrl, LABEL), (each) => each.close());
  await sleep(SECONDS_BEFORE * 1_000);
  for (const [index, name] of NAMES.entries()) {
    await gateways[index]!.stop();
    gateways[index] = await start(index);
    await untilState(cluster, name, "UP");
  }
  await sleep(SECONDS_BEFORE * 1_000);
  await traffic.quiet();
  const { rows } = await cluster.execute(`select number from marks where note = '${LABEL}'`);
  const numbers = rows.map(({ number }) => Number(number));
  const { requests, subscribers } = traffic;
  await cluster.execute(`insert into marks (number, note) values (-1, '${LABEL}')`);
  while (subscribers.some(({ received }) => !received.has(-1))) await sleep(LOOK_MS);
  const failures: Record<string, number> = {};
  for (const { failure } of requests) if (failure !== null) failures[failure] = (failures[failure] ?? 0) + 1;
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return {
    requests: requests.length,
    failures,
    closes: sum(subscribers.map(({ closes }) => closes())),
    subscribers: subscribers.length,
    received: sum(subscribers.map(({ received }) => received.size)),
    missed: sum(subscribers.map(({ received }) => numbers.filter((number) => !received.has(number)).length)),
    repeated: sum(subscribers.map(({ received }) => [...received.values()].filter((count) => count > 1).length)),
    gapsTold: sum(subscribers.map(({ gaps }) => gaps.length)),
  };
}

/** Resolves when HAProxy reports the gateway as ready (`UP`), or as not ready. */
export async function untilState(cluster: PatroniCluster, name: string, expected: "UP" | "DOWN"): Promise<void> {
  for (;;) {
    const lines = (await ask(join(cluster.folder, "haproxy.sock"), "show stat")).split("\n");
    const state = lines
      .map((line) => line.split(","))
      .find(([proxy, server]) => proxy === "gateways" && server === name);
    if (state?.includes(expected)) return;
    await sleep(LOOK_MS);
  }
}

/** Returns the response of HAProxy's runtime API. */
async function ask(path: string, command: string): Promise<string> {
  const socket = connect(path);
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk));
  socket.end(`${command}\n`);
  await once(socket, "close");
  return answer;
}

export function isWithoutFault({ failures, missed, repeated, gapsTold, closes, subscribers }: RollingRestart): boolean {
  return Object.keys(failures).length === 0 && missed + repeated + gapsTold === 0 && closes >= subscribers;
}

export function describeRestart(found: RollingRestart): string[] {
  const failed = Object.entries(found.failures);
  return [
    "| rolling restart of three gateways behind HAProxy | |",
    "| --- | --- |",
    `| requests | ${found.requests} |`,
    `| failed | ${failed.reduce((sum, [, times]) => sum + times, 0)} |`,
    `| subscribers / sockets closed by a gateway | ${found.subscribers} / ${found.closes} |`,
    `| row changes received | ${found.received} |`,
    `| missed / received twice / gaps told | ${found.missed} / ${found.repeated} / ${found.gapsTold} |`,
    ...failed.map(([failure, times]) => `  ${times} x ${failure}`),
  ];
}
