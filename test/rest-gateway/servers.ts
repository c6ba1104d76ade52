import type { Server } from "node:http";
import { afterEach } from "vitest";
import { drain } from "../../http/drain.ts";
import { openServer } from "../../http/server.ts";

export const place = {
  host: "127.0.0.1",
  port: 0,
  maxHeaderBytes: 8192,
  requestTimeout: 60,
  errorBody: "nested",
  httpsCertificate: null,
  httpsKey: null,
} as const;

/** Starts servers that are gone after each test. */
export function useServers(): (
  handler: Parameters<typeof openServer>[0],
  at?: Parameters<typeof openServer>[1],
  upgrade?: Parameters<typeof openServer>[2],
) => Promise<Server> {
  const servers: Server[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => drain(server, 0).catch(() => {})));
  });
  return async (handler, at = place, upgrade) => {
    const server = await openServer(handler, at, upgrade);
    servers.push(server);
    return server;
  };
}
