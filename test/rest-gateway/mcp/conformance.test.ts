import { execFile } from "node:child_process";
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { installedPeer } from "../../installed-peer.ts";
import { CALLERS, serveAgents, tokenOf } from "./agents.ts";
import { conformanceFixture } from "./conformance-fixture.ts";

let proxy: Server;
const agents = useFixture(() => serveAgents({}, { extendMcp: conformanceFixture }));
beforeAll(async () => {
  proxy = await openSigningProxy(agents.address);
});
afterAll(async () => {
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
});

/** The suite sends no credentials: they are added on the way, and nothing else is changed. */
function openSigningProxy(address: URL): Promise<Server> {
  const authorization = `Bearer ${tokenOf(CALLERS.ann)}`;
  const server = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const sent = httpRequest(address, { method: method!, headers: { ...headers, authorization } }, (response) => {
      outgoing.writeHead(response.statusCode!, response.headers);
      response.pipe(outgoing);
    });
    sent.on("error", () => outgoing.destroy());
    outgoing.on("close", () => sent.destroy());
    incoming.pipe(sent);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

const SUITE = installedPeer("@modelcontextprotocol/conformance/dist/index.js");

test.skipIf(SUITE === null).each(["2025-11-25", "2026-07-28"])(
  "the server passes the protocol's own tests of %s",
  async (version) => {
    const { port } = proxy.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/mcp`;
    const args = [SUITE!, "server", "--url", url, "--requirements", version];
    // Exits with an error if a scenario fails.
    const ended = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 }).catch((error) => error);
    expect({ code: ended.code ?? 0, stdout: ended.code ? ended.stdout : "" }).toEqual({ code: 0, stdout: "" });
    expect(ended.stdout).toContain("tools-list");
  },
);
