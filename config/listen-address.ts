import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { createSecureContext } from "node:tls";
import type { Config } from "./config.ts";

export type ListenAddress = Pick<Config, "host" | "port" | "httpsCertificate" | "httpsKey"> & {
  /** The names of the settings, for error messages. */
  readonly settings?: AddressSettingNames;
};
type AddressSettingNames = { readonly host: string; readonly port: string };

const DEFAULT_SETTING_NAMES: AddressSettingNames = { host: "HOST", port: "PORT" };

/** Fails early if the address or the certificate cannot be used. */
export async function checkListenAddress(address: ListenAddress): Promise<void> {
  await readCertificate(address);
  const server = createServer();
  await listenAt(server, address);
  await closeServer(server);
}

/**
 * Node accepts one connection per turn of the event loop; others wait in the kernel, up to `somaxconn`, and long work waits
 * for them. A client beyond that limit retries after one second, then after three.
 */
const LISTEN_BACKLOG = 4_096;

export async function listenAt(server: Server, address: ListenAddress): Promise<void> {
  server.listen({ port: address.port, host: address.host, backlog: LISTEN_BACKLOG });
  try {
    await once(server, "listening");
  } catch (error) {
    throw explainListenError(error as NodeJS.ErrnoException, address);
  }
}

async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((done, fail) => server.close((error) => (error ? fail(error) : done())));
}

function explainListenError(
  error: NodeJS.ErrnoException,
  { host, port, settings = DEFAULT_SETTING_NAMES }: ListenAddress,
): Error {
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

type TlsCertificate = { readonly cert: Buffer; readonly key: Buffer };

/** Returns the contents of HTTPS_CERT_FILE and HTTPS_KEY_FILE; null if they are not set. */
export async function readCertificate({
  httpsCertificate,
  httpsKey,
}: Pick<Config, "httpsCertificate" | "httpsKey">): Promise<TlsCertificate | null> {
  if (httpsCertificate === null || httpsKey === null) return null;
  const [cert, key] = await Promise.all([
    readSettingFile("HTTPS_CERT_FILE", httpsCertificate),
    readSettingFile("HTTPS_KEY_FILE", httpsKey),
  ]);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new Error(
      `HTTPS_CERT_FILE and HTTPS_KEY_FILE do not hold a certificate and its key in PEM form: ${(error as Error).message}`,
    );
  }
  return { cert, key };
}

async function readSettingFile(setting: string, file: string): Promise<Buffer> {
  return readFile(file).catch((error: Error) => {
    throw new Error(`${setting} cannot be read: ${error.message}`);
  });
}
