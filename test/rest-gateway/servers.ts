import type { Server } from "node:http";
import { afterEach } from "vitest";
import { drain } from "../../rest-gateway/drain.ts";
import { listen } from "../../rest-gateway/listen.ts";

export const place = {
  host: "127.0.0.1",
  port: 0,
  maxHeaderBytes: 8192,
  requestTimeout: 60,
  httpsCertificate: null,
  httpsKey: null,
};

/** Starts servers that are gone after each test. */
export function useServers(): (handler: Parameters<typeof listen>[0]) => Promise<Server> {
  const servers: Server[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => drain(server, 0).catch(() => {})));
  });
  return async (handler) => {
    const server = await listen(handler, place);
    servers.push(server);
    return server;
  };
}
