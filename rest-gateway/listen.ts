import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer, Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Config } from "../engine/config/config.ts";
import { readCertificate } from "./certificate.ts";
import { follow } from "./drain.ts";
import { refuseSeveralHosts, refuseUnreadable, refuseUpgradeOfSeveralHosts } from "./unreadable.ts";
import { type Upgrade, wantsWebSocket } from "./upgrade.ts";

type Address = Pick<Config, "host" | "port" | "httpsCertificate" | "httpsKey"> & {
  /** What the two are set by, for who is told that they cannot be had. */
  readonly settings?: Settings;
};
type Settings = { readonly host: string; readonly port: string };
type Place = Address & Pick<Config, "maxHeaderBytes" | "requestTimeout" | "errorBody">;

const SETTINGS: Settings = { host: "HOST", port: "PORT" };
/** Longer than the 60 seconds of common proxies, which would otherwise meet a connection that is just being closed. */
const KEEP_ALIVE_MS = 65_000;
/** How often late requests are looked for; node's 30 seconds would make REQUEST_TIMEOUT_SECONDS that much longer. */
const LATE_CHECK_MS = 2_000;

export async function listen(
  handler: RequestListener,
  { maxHeaderBytes, requestTimeout, errorBody, ...address }: Place,
  upgrade?: Upgrade,
): Promise<Server> {
  const certificate = await readCertificate(address);
  const options = {
    maxHeaderSize: maxHeaderBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: LATE_CHECK_MS,
    // What has no body need not be read as a stream: a sixteenth of what a small answer costs.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: wantsWebSocket,
  };
  const server = certificate ? createSecureServer({ ...options, ...certificate }) : createServer(options);
  if (upgrade) server.on("upgrade", refuseUpgradeOfSeveralHosts(upgrade, errorBody));
  follow(server);
  server.on("request", refuseSeveralHosts(handler, errorBody));
  server.requestTimeout = requestTimeout * 1000;
  server.headersTimeout = Math.min(server.requestTimeout, 60_000);
  server.on("clientError", refuseUnreadable(errorBody));
  await bind(server, address);
  return server;
}

/** Fails before anything is started when the address cannot be had, or what it is served with. */
export async function checkAddress(address: Address): Promise<void> {
  await readCertificate(address);
  const server = createServer();
  await bind(server, address);
  await closed(server);
}

export function addressOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  const scheme = server instanceof SecureServer ? "https" : "http";
  return `${scheme}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Connections that come from now on are shown the certificate that the files hold by now. */
export async function renewCertificate(server: Server, files: Parameters<typeof readCertificate>[0]): Promise<void> {
  const certificate = await readCertificate(files);
  if (certificate && server instanceof SecureServer) server.setSecureContext(certificate);
}

/**
 * One connection is accepted in a turn of the event loop. Those that come faster wait in the kernel, as many as it lets (`somaxconn`);
 * whoever does not fit there tries again after a second, and then after three.
 */
const MOST_UNACCEPTED = 4_096;

async function bind(server: Server, address: Address): Promise<void> {
  server.listen({ port: address.port, host: address.host, backlog: MOST_UNACCEPTED });
  try {
    await once(server, "listening");
  } catch (error) {
    throw inWords(error as NodeJS.ErrnoException, address);
  }
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((done, fail) => server.close((error) => (error ? fail(error) : done())));
}

function inWords(error: NodeJS.ErrnoException, { host, port, settings = SETTINGS }: Address): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(
        `Port ${port} of ${host} is in use. ` +
          `Stop what listens there, or set ${settings.port} to another port (0 takes a free one).`,
      );
    case "EACCES":
      return new Error(`This user may not listen on port ${port}. Set ${settings.port} to one above 1023.`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(
        `${host} is no address of this machine. Set ${settings.host} to one that is, or to 0.0.0.0 for all.`,
      );
    default:
      return error;
  }
}
