import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { checkListenAddress, openServer, serverUrl } from "../../http/server.ts";
import { place, useServers } from "../rest-gateway/servers.ts";

const start = useServers();

/** Connects so many times to a port, and prints how many got through before nothing happened for a second. */
const CONNECTS = `
  const { connect } = require("node:net");
  const [port, count] = process.argv.slice(1).map(Number);
  let connected = 0;
  const end = () => (console.log(connected), process.exit());
  const idle = setTimeout(end, 1_000);
  for (let n = 0; n < count; n++) {
    connect(port, "127.0.0.1").on("error", () => {}).on("connect", () => {
      idle.refresh();
      if (++connected === count) end();
    });
  }`;
const MANY = 900;
const SOMAXCONN = "/proc/sys/net/core/somaxconn";
const queue = existsSync(SOMAXCONN) ? Number(readFileSync(SOMAXCONN, "utf8")) : 0;

describe("listen", () => {
  test.skipIf(queue < MANY)(
    "connections that arrive while the service is busy wait in the kernel, and none is refused",
    async () => {
      const { port } = (await start(() => {})).address() as AddressInfo;
      // Nothing else happens in this process meanwhile.
      const connected = execFileSync(process.execPath, ["-e", CONNECTS, String(port), String(MANY)], {
        encoding: "utf8",
      });
      expect(Number(connected)).toBe(MANY);
    },
  );

  test("a port in use is reported with a remedy, before and while listening", async () => {
    const { port } = (await start(() => {})).address() as AddressInfo;
    await expect(checkListenAddress({ ...place, port })).rejects.toThrow(`Port ${port} of 127.0.0.1 is in use`);
    await expect(openServer(() => {}, { ...place, port })).rejects.toThrow("set PORT to another port");
    await checkListenAddress(place);
  });

  test("a port for operators is reported with its own setting", async () => {
    const { port } = (await start(() => {})).address() as AddressInfo;
    const settings = { host: "ADMIN_HOST", port: "ADMIN_PORT" };
    await expect(openServer(() => {}, { ...place, port, settings })).rejects.toThrow("set ADMIN_PORT to another port");
    await expect(openServer(() => {}, { ...place, host: "192.0.2.1", settings })).rejects.toThrow("Set ADMIN_HOST");
  });

  test("an address of another machine is reported", async () => {
    await expect(checkListenAddress({ ...place, host: "192.0.2.1" })).rejects.toThrow("Set HOST");
  });

  test("addressOf returns an address that clients can connect to", async () => {
    const server = await start(() => {});
    const { port } = server.address() as AddressInfo;
    expect(serverUrl(server, "127.0.0.1")).toBe(`http://127.0.0.1:${port}`);
    expect(serverUrl(server, "0.0.0.0")).toBe(`http://localhost:${port}`);
    expect(serverUrl(server, "::1")).toBe(`http://[::1]:${port}`);
  });
});
