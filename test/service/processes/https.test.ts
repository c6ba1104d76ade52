import { once } from "node:events";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request as plainRequest } from "node:http";
import { get } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { type Authority, makeAuthority, type Signed } from "../../certificates.ts";
import { useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { type Program, startGateway, stopped } from "../../program.ts";
import { anonKey } from "../../realtime/service.ts";
import { until } from "../../until.ts";

let authority: Authority;
let site: Signed;
let ca: Buffer;
let program: Program;

const folder = useFolder("https-");
beforeAll(async () => {
  authority = await makeAuthority(folder, "authority");
  site = await authority.sign("localhost", "site");
  ca = await readFile(authority.certificate);
});
const database = useDatabase();
beforeAll(async () => {
  program = await start();
});
afterAll(() => program.kill());

const start = (settings: NodeJS.ProcessEnv = {}) =>
  startGateway(database, {
    HOST: "localhost",
    HTTPS_CERT_FILE: site.certificate,
    HTTPS_KEY_FILE: site.key,
    ...settings,
  });

/** Visits a path on a connection of its own. */
async function visit(path: string, { url = program.url, trust = ca } = {}) {
  const request = get(`${url}${path}`, { ca: trust, agent: false });
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  const { serialNumber } = (answer.socket as TLSSocket).getPeerCertificate();
  answer.resume();
  await once(answer, "end");
  return { status: answer.statusCode, serialNumber };
}

describe("HTTPS_CERT_FILE and HTTPS_KEY_FILE", () => {
  test("serve HTTPS to clients that trust the issuer", async () => {
    expect(program.url).toMatch(/^https:\/\/localhost:\d+$/);
    expect((await visit("/health")).status).toBe(200);
    await makeAuthority(folder, "stranger");
    const anonymous = await readFile(join(folder, "stranger.crt"));
    await expect(visit("/health", { trust: anonymous })).rejects.toThrow("unable to verify");
  });

  test("refuse plain HTTP", async () => {
    const request = plainRequest(`${program.url.replace("https", "http")}/health`).end();
    await expect(once(request, "response")).rejects.toThrow("socket hang up");
  });

  test.each([
    ["of GraphQL", "/graphql"],
    ["of channels", `/realtime/v1/websocket?vsn=2.0.0&apikey=${anonKey}`],
  ])("allow WebSockets %s", async (_whose, path) => {
    const socket = new WebSocket(`${program.url.replace("https", "wss")}${path}`, "graphql-transport-ws", { ca });
    await once(socket, "open");
    expect(socket.readyState).toBe(WebSocket.OPEN);
    socket.close();
  });

  test("are reloaded on SIGUSR2, and new connections get the new certificate", async () => {
    const before = (await visit("/health")).serialNumber;
    await authority.sign("localhost", "site");
    expect((await visit("/health")).serialNumber).toBe(before);
    program.child.kill("SIGUSR2");
    await until(() => program.printed().includes("reloaded"));
    expect((await visit("/health")).serialNumber).not.toBe(before);
  });

  test("that are invalid are reported, and the old ones stay in use", async () => {
    const { serialNumber } = await visit("/health");
    await copyFile(site.certificate, join(folder, "kept.crt"));
    await writeFile(site.certificate, "no certificate");
    program.child.kill("SIGUSR2");
    await until(() => program.logged().includes("the service keeps running as before"));
    expect(program.logged()).toContain("HTTPS_CERT_FILE and HTTPS_KEY_FILE do not hold a certificate");
    expect(await visit("/health")).toEqual({ status: 200, serialNumber });
    await copyFile(join(folder, "kept.crt"), site.certificate);
  });

  test("that do not exist are reported at startup", async () => {
    await expect(start({ HTTPS_CERT_FILE: join(folder, "gone.crt") })).rejects.toThrow(
      /^It ended with 1 [^\n]*\nHTTPS_CERT_FILE cannot be read: ENOENT.*gone\.crt'$/m,
    );
  });

  test("do not let a client without a TLS handshake delay the shutdown", async () => {
    const silent = await start({ DRAIN_TIMEOUT_SECONDS: "1" });
    const socket = connect(Number(new URL(silent.url).port), "localhost");
    const closed = once(socket, "close");
    await once(socket, "connect");
    // The server has taken it by the time that another one, which came later, has been answered.
    await visit("/health", { url: silent.url });
    expect(await stopped(silent, "SIGTERM")).toBe(0);
    expect(silent.logged()).not.toContain("did not close in time");
    await closed;
  });

  test("work with several processes", async () => {
    expect(await stopped(program, "SIGTERM")).toBe(0);
    program = await start({ WEB_CONCURRENCY: "2" });
    const visits = await Promise.all(Array.from({ length: 4 }, () => visit("/health")));
    expect(visits.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });
});
