import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { addressOf, checkAddress, listen } from "../../rest-gateway/listen.ts";
import { place, useServers } from "./servers.ts";

const start = useServers();

describe("listen", () => {
  test("a port in use is told with what to do, before and while listening", async () => {
    const { port } = (await start(() => {})).address() as AddressInfo;
    await expect(checkAddress({ ...place, port })).rejects.toThrow(`Port ${port} of 127.0.0.1 is in use`);
    await expect(listen(() => {}, { ...place, port })).rejects.toThrow("set PORT to another port");
    await checkAddress(place);
  });

  test("a port for operators is told by its own setting", async () => {
    const { port } = (await start(() => {})).address() as AddressInfo;
    const settings = { host: "ADMIN_HOST", port: "ADMIN_PORT" };
    await expect(listen(() => {}, { ...place, port, settings })).rejects.toThrow("set ADMIN_PORT to another port");
    await expect(listen(() => {}, { ...place, host: "192.0.2.1", settings })).rejects.toThrow("Set ADMIN_HOST");
  });

  test("an address that is not of this machine is told so", async () => {
    await expect(checkAddress({ ...place, host: "192.0.2.1" })).rejects.toThrow("Set HOST");
  });

  test("addressOf is what a client can open", async () => {
    const server = await start(() => {});
    const { port } = server.address() as AddressInfo;
    expect(addressOf(server, "127.0.0.1")).toBe(`http://127.0.0.1:${port}`);
    expect(addressOf(server, "0.0.0.0")).toBe(`http://localhost:${port}`);
    expect(addressOf(server, "::1")).toBe(`http://[::1]:${port}`);
  });
});
