import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { serverUrl } from "../../http/server.ts";
import { useServers } from "../rest-gateway/servers.ts";

const start = useServers();

/** Connects so many times to a port, and prints how many got through before the kernel had to ask again for one. */
const CONNECTS = `
  const { readFileSync } = require("node:fs");
  const { connect } = require("node:net");
  const [port, count] = process.argv.slice(1).map(Number);
  const SYN_SENT = "02";
  const end = () => (console.log(connected), process.exit());
  const isRefused = (line) => {
    const [, , remote, state, , , retries] = line.trim().split(/ +/);
    return state === SYN_SENT && parseInt(remote.split(":")[1], 16) === port && parseInt(retries, 16) > 0;
  };
  let connected = 0;
  for (let n = 0; n < count; n++) {
    connect(port, "127.0.0.1").on("error", () => {}).on("connect", () => {
      if (++connected === count) end();
    });
  }
  setInterval(() => readFileSync("/proc/net/tcp", "utf8").split("\\n").some(isRefused) && end(), 100);`;
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

  test("addressOf returns an address that clients can connect to", async () => {
    const server = await start(() => {});
    const { port } = server.address() as AddressInfo;
    expect(serverUrl(server, "127.0.0.1")).toBe(`http://127.0.0.1:${port}`);
    expect(serverUrl(server, "0.0.0.0")).toBe(`http://localhost:${port}`);
    expect(serverUrl(server, "::1")).toBe(`http://[::1]:${port}`);
  });
});
