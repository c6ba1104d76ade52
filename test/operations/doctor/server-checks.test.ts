import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { readConfig } from "../../../config/config.ts";
import {
  type DoctorFacts,
  type HostFacts,
  readHostFacts,
  readReplicaFacts,
  readServerFacts,
} from "../../../operations/doctor/facts.ts";
import { hostFindings, replicaFindings, serverFindings } from "../../../operations/doctor/server-checks.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { serverBinaries } from "../../server-binaries.ts";
import { startPair } from "../../standby.ts";
import { until } from "../../until.ts";

const SERVER: DoctorFacts["server"] = {
  release: "18.6",
  isStandby: false,
  standbys: 0,
  openSchemas: [],
  clients: [],
  slots: [],
  spareSlots: { slots: 5, senders: 5 },
  looseDefiners: [],
  claimsHook: null,
  unusableTaskRoles: [],
  workers: [],
};
const KEEPER = {
  name: "changes_5",
  isActive: false,
  isLost: false,
  isPhysical: false,
  retainedBytes: 0,
  isKeeper: true,
};
const REPLICA = { host: "db2", status: "well", copiesSlots: false } as const;

function findings(server: Partial<DoctorFacts["server"]>, environment: NodeJS.ProcessEnv = {}) {
  const { config } = readConfig(environment);
  return serverFindings({ server: { ...SERVER, ...server }, config, missingTriggerSql: null });
}

const problems = (...server: Parameters<typeof findings>) => findings(...server).map(({ problem }) => problem);

test.each(["18.6", "18.7 (Debian 18.7-1.pgdg12+1)", "19beta4", "15.12-YB-2025.1.0.0-b0"])(
  "release %s, which lacks no known fix or is of a fork, is not reported",
  (release) => {
    expect(problems({ release })).toEqual([]);
  },
);

test("a release without the newest security fixes that are known is reported, with what to update", () => {
  expect(findings({ release: "18.4" })).toEqual([
    {
      kind: "advice",
      problem: "Postgres 18.4 lacks the security fixes of 18.6, of 2026-08-13.",
      fix: "-- Update this package when it contains 18.6, or set DATABASE_URL to your own Postgres.",
    },
  ]);
  const external = { DATABASE_URL: "postgresql://authenticator@localhost/app", JWT_SECRET: SECRET };
  expect(findings({ release: "15.18 (Debian 15.18-0+deb12u1)" }, external)).toEqual([
    {
      kind: "advice",
      problem: "Postgres 15.18 (Debian 15.18-0+deb12u1) lacks the security fixes of 15.20, of 2026-11-12.",
      fix: "-- Update to the newest minor release of Postgres 15, and restart it.",
    },
  ]);
});

test("the releases that docs/engines.md names are those that are known", async () => {
  const page = await readFile(join(REPOSITORY, "docs/engines.md"), "utf8");
  const [, releases, dates] = /^(\| 14\..*)\n\| ---.*\n(\| 20.*)$/m.exec(page)!;
  const cellsOf = (row: string) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
  const expected = cellsOf(releases!).map(
    (release, index) => `lacks the security fixes of ${release}, of ${cellsOf(dates!)[index]}.`,
  );
  expect(expected).toHaveLength(5);
  const found = cellsOf(releases!).map((release) => {
    const [major, minor] = release.split(".").map(Number);
    expect(problems({ release }).join(" ")).not.toContain("lacks");
    return problems({ release: `${major}.${minor! - 1}` }).join(" ");
  });
  expect(found).toEqual(expected.map((text) => expect.stringContaining(text)));
});

test("a major version that gets no more fixes is reported", () => {
  expect(problems({ release: "14.24" })).toEqual(["Postgres 14 has had no security fixes since 2026-11-12."]);
});

test("a standby in place of the primary is reported", () => {
  expect(problems({ isStandby: true })).toEqual(["OWNER_DATABASE_URL is that of a standby, which takes no writes."]);
});

test("a replication slot that a failover would lose is reported, if there are standbys", () => {
  expect(problems({ slots: [{ ...KEEPER, isFailover: false }] })).toEqual([]);
  expect(problems({ standbys: 1, slots: [{ ...KEEPER, isFailover: true }] })).toEqual([]);
  expect(problems({ standbys: 1, slots: [{ ...KEEPER, isFailover: false }] })).toEqual([
    expect.stringContaining("The replication slot changes_5 is not copied to standbys"),
  ]);
  expect(problems({ standbys: 1, slots: [{ ...KEEPER, isFailover: null }] })).toEqual([
    expect.stringContaining("Postgres before 17 does not copy the replication slot changes_5"),
  ]);
});

test("a replica that copies no replication slots is reported, if the service keeps one", () => {
  const replicas = [REPLICA, { ...REPLICA, copiesSlots: true }];
  const { config } = readConfig({});
  expect(replicaFindings({ replicas, server: SERVER, config })).toEqual([]);
  const server = { ...SERVER, slots: [{ ...KEEPER, isFailover: true }] };
  expect(replicaFindings({ replicas, server, config }).map(({ problem }) => problem)).toEqual([
    expect.stringContaining("Replica 1 of READ_DATABASE_URLS (db2) does not copy replication slots"),
  ]);
});

test("the slot of a standby that does not follow the server is reported", () => {
  const slot = { ...KEEPER, name: "b", isPhysical: true, isFailover: null, isKeeper: false };
  expect(problems({ slots: [{ ...slot, isActive: true }] })).toEqual([]);
  expect(problems({ slots: [slot] })).toEqual([expect.stringContaining("No standby uses the replication slot b")]);
});

test("of several hosts, unreachable ones, a second primary and a standby without slots are reported", () => {
  const setting = "DATABASE_URL";
  const host = (name: string, status: HostFacts["status"], copiesSlots: boolean | null = null): HostFacts => {
    return { setting, host: name, status, copiesSlots };
  };
  const server = { ...SERVER, slots: [{ ...KEEPER, isFailover: true }] };
  const problemsOf = (...hosts: HostFacts[]) => hostFindings({ hosts, server }).map(({ problem }) => problem);
  expect(problemsOf(host("a", "primary"), host("b", "well", true), host("c", "without feedback"))).toEqual([]);
  expect(problemsOf(host("a", "primary"), host("b", "away"), host("c", "well", false))).toEqual([
    "A host of DATABASE_URL (b) is unreachable: the service cannot follow a failover to it.",
    expect.stringContaining("A host of DATABASE_URL (c) does not copy replication slots"),
  ]);
  expect(problemsOf(host("a", "primary"), host("b", "primary"))).toEqual([
    "2 hosts of DATABASE_URL take writes, and each gateway uses one of them: a, b.",
  ]);
  const another = { ...host("b", "primary"), setting: "OWNER_DATABASE_URL" };
  expect(problemsOf(host("a", "primary"), another)).toEqual([]);
});

test("the standbys of a primary are counted, and a standby is recognised", async () => {
  const { major } = await serverBinaries();
  const root = await mkdtemp(join(tmpdir(), "doctor-"));
  await chmod(root, 0o755);
  const pair = await startPair(root);
  const read = (url: string) =>
    withClient(url, async (owner) => {
      const { catalog } = await loadCatalog(owner, { schemas: [], extraSearchPath: [], loginRole: "postgres" });
      return readServerFacts(owner, { catalog, clients: [], searched: [], claimsHook: null, login: "postgres" });
    });
  try {
    await withClient(pair.primary("postgres", "postgres"), (owner) =>
      until(
        async () => (await owner.query("select from pg_stat_replication where state = 'streaming'")).rowCount === 1,
      ),
    );
    expect(await read(pair.primary("postgres", "postgres"))).toMatchObject({ isStandby: false, standbys: 1 });
    const standby = pair.standby("postgres", "postgres");
    expect(await read(standby)).toMatchObject({ isStandby: true, standbys: 0 });
    expect(await readReplicaFacts(standby)).toMatchObject({
      status: "without feedback",
      copiesSlots: major >= 17 ? false : null,
    });
    const placeOf = (url: string) => new URL(url.replace("@/", "@localhost/")).searchParams;
    const folders = [pair.primary("postgres", "postgres"), standby].map((url) => placeOf(url).get("host"));
    const several = `postgresql://postgres@/postgres?host=${folders.join(",")},${root}&port=5432`;
    expect(await readHostFacts("DATABASE_URL", several)).toMatchObject([
      { setting: "DATABASE_URL", status: "primary" },
      { setting: "DATABASE_URL", status: "without feedback" },
      { setting: "DATABASE_URL", status: "away" },
    ]);
    expect(await readHostFacts("DATABASE_URL", standby)).toEqual([]);
  } finally {
    await pair.stop();
    await rm(root, { recursive: true, force: true });
  }
});
