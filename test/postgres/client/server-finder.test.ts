import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import pg from "pg";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { awaitDatabase } from "../../../cluster/served-postgres.ts";
import { openListener } from "../../../postgres/client/listen.ts";
import { NoServerError, ServerFinder } from "../../../postgres/client/server-finder.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { OwnerPool } from "../../../postgres/database/owner-pool.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { openWire } from "../../postgres-wire.ts";
import { startPair } from "../../standby.ts";
import { until } from "../../until.ts";

const log = { info() {}, warn() {}, error() {} };

/** Accepts connections and answers nothing. */
let urlOf: (hosts: readonly string[], parameters?: string) => string;
let primary: string;
let standby: string;
let silent: string;
/** A port that nothing listens on. */
const closed = "127.0.0.1:1";

const root = useFolder("servers-", 0o755);
const pair = useFixture(() => startPair(root));
const toPrimary = useFixture(() => openWire(pair.primary("postgres", "postgres")));
const toStandby = useFixture(() => openWire(pair.standby("postgres", "postgres")));
const mute = useFixture(() => createServer((socket) => socket.on("error", () => {}).resume()).listen(0, "127.0.0.1"));
beforeAll(async () => {
  await once(mute, "listening");
  primary = new URL(toPrimary.url).host;
  standby = new URL(toStandby.url).host;
  silent = `127.0.0.1:${(mute.address() as AddressInfo).port}`;
  urlOf = (hosts, parameters = "target_session_attrs=primary") =>
    `postgresql://postgres@${hosts.join(",")}/postgres?${parameters}`;
});

async function serverOf(finder: ServerFinder, timeoutMs = 0): Promise<string> {
  const { client, serverName } = await finder.connect((server) => new pg.Client(server), timeoutMs);
  await client.end();
  return serverName;
}

describe("the server of a new session", () => {
  test.each([
    ["primary", () => primary],
    ["read-write", () => primary],
    ["standby", () => standby],
    ["read-only", () => standby],
    ["prefer-standby", () => standby],
    ["any", () => standby],
  ])("is, for target_session_attrs=%s, the first one that is suitable", async (wanted, expected) => {
    for (const hosts of [[closed, standby, primary], wanted === "any" ? [standby, primary] : [primary, standby]]) {
      expect(await serverOf(new ServerFinder(urlOf(hosts, `target_session_attrs=${wanted}`)))).toBe(expected());
    }
  });

  test("may be a primary for prefer-standby, if there is no standby", async () => {
    expect(await serverOf(new ServerFinder(urlOf([closed, primary], "target_session_attrs=prefer-standby")))).toBe(
      primary,
    );
  });

  test("is remembered: the others are not tried again", async () => {
    const finder = new ServerFinder(urlOf([standby, primary]));
    await serverOf(finder);
    const before = toStandby.opened();
    for (let time = 0; time < 3; time++) expect(await serverOf(finder)).toBe(primary);
    expect(toStandby.opened()).toBe(before);
  });

  test("is another one if the last one does not answer, within a few seconds", async () => {
    expect(await serverOf(new ServerFinder(urlOf([silent, primary])))).toBe(primary);
  });

  test("is chosen at random with load_balance_hosts=random", async () => {
    const finder = new ServerFinder(urlOf([standby, primary], "load_balance_hosts=random"));
    const found = new Set<string>();
    await expect.poll(async () => found.add(await serverOf(finder)).size === 2).toBe(true);
  });

  test("is, at random, not one that has just failed, and half a minute later that one too", async () => {
    const finder = new ServerFinder(urlOf([standby, primary], "target_session_attrs=any&load_balance_hosts=random"));
    const failedAt = performance.now();
    // The clock stands still, however long the connections take.
    const clock = vi.spyOn(performance, "now").mockReturnValue(failedAt);
    try {
      finder.noteStandby(standby);
      const found = new Set<string>();
      for (let time = 0; time < 10; time++) found.add(await serverOf(finder));
      expect([...found]).toEqual([primary]);
      clock.mockReturnValue(failedAt + 30_001);
      await expect.poll(async () => found.add(await serverOf(finder)).has(standby)).toBe(true);
    } finally {
      clock.mockRestore();
    }
  });

  test("is asked if its parameters are not to be trusted", async () => {
    const finder = new ServerFinder(urlOf([primary]));
    finder.noteStandby(primary);
    expect(await serverOf(finder)).toBe(primary);
  });
});

describe("without a suitable server", () => {
  test("the error says what each one is", async () => {
    const finding = serverOf(new ServerFinder(urlOf([standby, closed, silent])), 300);
    await expect(finding).rejects.toThrow(
      `no primary: ${standby} is a standby, ${closed} refuses connections, ${silent} does not answer`,
    );
    await expect(serverOf(new ServerFinder(urlOf([standby])))).rejects.toThrow(`no primary: ${standby} is a standby`);
    const inFollowers = new ServerFinder(urlOf([primary], "target_session_attrs=standby"));
    await expect(serverOf(inFollowers)).rejects.toThrow(`no standby: ${primary} is a primary`);
  });

  test("the session is closed", async () => {
    await expect(
      serverOf(new ServerFinder(urlOf([standby], "target_session_attrs=primary&application_name=refused"))),
    ).rejects.toThrow(NoServerError);
    await withClient(pair.standby("postgres", "postgres"), (client) =>
      until(async () => {
        const { rowCount } = await client.query("select from pg_stat_activity where application_name = 'refused'");
        return rowCount === 0;
      }),
    );
  });

  test("a server that accepts the login and answers no question is one that does not answer", async () => {
    const welcome = Buffer.from("R\0\0\0\b\0\0\0\0Z\0\0\0\x05I");
    const lame = createServer((socket) => socket.on("error", () => {}).once("data", () => socket.write(welcome)));
    await once(lame.listen(0, "127.0.0.1"), "listening");
    const host = `127.0.0.1:${(lame.address() as AddressInfo).port}`;
    await expect(serverOf(new ServerFinder(urlOf([host, standby])))).rejects.toThrow(`${host} does not answer`);
    lame.close();
  });

  test("a refused login is the error, after all servers were tried", async () => {
    const url = `postgresql://nobody@${primary},${standby},${closed}/postgres`;
    const before = toStandby.opened();
    await expect(serverOf(new ServerFinder(url))).rejects.toMatchObject({ code: "28000" });
    expect(toStandby.opened()).toBe(before + 1);
  });

  test("a single server's own error is thrown", async () => {
    await expect(serverOf(new ServerFinder(urlOf([closed])))).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("the start waits for one, and reports it", async () => {
    const steps: string[] = [];
    const waiting = awaitDatabase(urlOf([standby, closed]), "DATABASE_URL", (step) => steps.push(step), 300);
    await expect(waiting).rejects.toThrow(/no primary: .* is a standby.*add the other hosts/);
    expect(steps).toEqual([expect.stringContaining(`waiting for the database at ${standby},${closed} (no primary:`)]);
  });
});

describe("with several hosts", () => {
  test("withClient, the owner's pool and LISTEN use the primary", async () => {
    const url = urlOf([closed, standby, primary]);
    const isStandby = async (client: pg.ClientBase) =>
      (await client.query("select pg_is_in_recovery() as answer")).rows[0].answer;
    expect(await withClient(url, isStandby)).toBe(false);

    const ofPool = urlOf([closed, standby, primary], "target_session_attrs=primary&application_name=pool");
    const pool = new OwnerPool({ url: ofPool, applicationName: "owner", acquireTimeout: 5_000 });
    expect(await Promise.all([1, 2, 3].map(() => pool.lend(isStandby)))).toEqual([false, false, false]);
    await pool.close();

    const listener = openListener({ url, log });
    const heard: string[] = [];
    await listener.listen("news", (payload) => heard.push(payload));
    await withClient(pair.primary("postgres", "postgres"), (client) => client.query("notify news, 'it works'"));
    await until(() => heard.length === 1);
    await listener.close();
  });
});
