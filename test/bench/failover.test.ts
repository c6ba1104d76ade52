import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { startGateway } from "../../bench/failover/gateway.ts";
import { isInstalled, startPatroniCluster } from "../../bench/failover/patroni-cluster.ts";
import { describeRestart, isWithoutFault, restartGateways, untilState } from "../../bench/failover/rolling-restart.ts";
import { describe as describeRun, faultsOf, prepareDatabase, runFailovers } from "../../bench/failover.ts";
import { useFixture } from "../fixture.ts";
import { propertyRuns } from "../property-runs.ts";

const EVERY_SECONDS = 16;
/** A failover of each kind; with all property runs five of each. */
const SECONDS = Number(process.env.FAILOVER_SECONDS ?? propertyRuns(10) * EVERY_SECONDS);

// Debian's packages patroni, etcd-server, haproxy and postgresql-15, which .ci/run installs.
describe.runIf(isInstalled)("on the cluster of deploy/ha", () => {
  const cluster = useFixture(startPatroniCluster);
  beforeAll(() => prepareDatabase(cluster));

  test("no acknowledged write and no row change is lost when the leader is killed or hands over, and the service continues", async () => {
    const lines: string[] = [];
    const run = await runFailovers(cluster, {
      seconds: SECONDS,
      every: EVERY_SECONDS,
      kinds: ["kill", "switchover"],
      print: (line) => lines.push(line),
    });
    console.log([...lines, ...describeRun(run)].join("\n"));
    expect(run.failovers.length).toBeGreaterThanOrEqual(2);
    for (const { acknowledged, received, withoutWrites } of Object.values(run.findings)) {
      expect(acknowledged).toBeGreaterThan(500);
      expect(received).toBeGreaterThan(acknowledged);
      // A leader that was not replaced would prove nothing.
      expect(Math.max(...withoutWrites)).toBeGreaterThan(1_000);
    }
    expect(faultsOf(run)).toEqual({});
  });

  test("three gateways behind HAProxy are restarted one after the other without a failed request or a missed row", async () => {
    const restart = await restartGateways(cluster);
    console.log(describeRestart(restart).join("\n"));
    expect(restart.requests).toBeGreaterThan(500);
    expect(restart.received).toBeGreaterThan(500);
    expect(isWithoutFault(restart)).toBe(true);
  });

  test("a request through HAProxy waits for the new leader in a gateway, although none is ready", async () => {
    await cluster.healthy();
    const settings = { ...cluster.hosts, HOST: cluster.gatewayHost, DB_ACQUIRE_TIMEOUT_SECONDS: "120" };
    const log = join(cluster.folder, "waiting gateway.log");
    await using _gateway = await startGateway(settings, cluster.gatewayPorts[0]!, log);
    await untilState(cluster, "a", "UP");
    await cluster.kill((await cluster.leader())!, "node");
    await untilState(cluster, "a", "DOWN");
    const { status } = await fetch(`${cluster.gatewayUrl}/api/v1/articles`);
    expect(status).toBe(200);
  });

  test("a standby that cannot follow any more is copied from the leader again", async () => {
    await cluster.healthy();
    const [leader, before] = [await cluster.leader(), await cluster.copies()];
    await cluster.removeWal(leader === "a" ? "b" : "a");
    while ((await cluster.copies()) === before) await sleep(100);
    await cluster.healthy();
    expect(await cluster.copies()).not.toBe(before);
  });
});
