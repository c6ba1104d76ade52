import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { checkListenAddress } from "../../config/listen-address.ts";
import { openServer } from "../../http/server.ts";
import { place, useServers } from "../rest-gateway/servers.ts";

const start = useServers();

describe("errors", () => {
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
});
