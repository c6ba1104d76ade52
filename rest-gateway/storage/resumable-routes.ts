import { Readable } from "node:stream";
import type { Locker, Server } from "@tus/server";
import { requireWriteAccess } from "#accounts/identity";
import type { GatewayResponse } from "#http";
import type { ResumableServices } from "./resumable-server.ts";
import { STORAGE_PREFIX, type StorageHandler, type StorageRequest, type StorageRoutes } from "./storage-request.ts";

const PATH = "/upload/resumable";
const SIGNED_PATH = "/upload/resumable/sign";
const METHODS = [
  `POST {base}`,
  "OPTIONS {base}",
  "OPTIONS {base}/{id}",
  "HEAD {base}/{id}",
  "PATCH {base}/{id}",
  "DELETE {base}/{id}",
] as const;

const routesOf = (base: string) => METHODS.map((method) => method.replace("{base}", base));

/** Routes without credentials: the signature of the address gives the right, and everybody may query the server's capabilities. */
export const OPEN_RESUMABLE_ROUTES = [
  ...routesOf(SIGNED_PATH),
  ...routesOf(PATH).filter((route) => route.startsWith("OPTIONS ")),
];

/** Uploads in several requests, by the protocol TUS 1.0.0. */
export function resumableRoutes(
  services: Pick<ResumableServices, "store" | "keys" | "signers" | "config">,
): StorageRoutes {
  // The lock of requests to this process. Two processes that write to the same upload write the same bytes.
  let locker: Locker | null = null;
  const finishing = new Map<string, Promise<void>>();
  const handle =
    (base: string): StorageHandler =>
    async (request) => {
      if (request.method !== "HEAD" && request.method !== "OPTIONS") requireWriteAccess(request.caller);
      // The library is loaded with the first such upload.
      const { makeLocker, openResumableServer } = await import("./resumable-server.ts");
      locker ??= makeLocker();
      const shared = { ...services, locker, finishing };
      const opened = await openResumableServer(request, { ...shared, path: `${STORAGE_PREFIX}${base}` });
      const response = await opened.server.handleWeb(toWebRequest(request));
      if (opened.failure !== null) throw opened.failure;
      return toGatewayResponse(response);
    };
  const entries = [PATH, SIGNED_PATH].flatMap((base) => routesOf(base).map((route) => [route, handle(base)] as const));
  return Object.fromEntries(entries);
}

type WebRequest = Parameters<Server["handleWeb"]>[0];

function toWebRequest(request: StorageRequest): WebRequest {
  const { method, path, headers } = request;
  const sent = Object.entries(headers).filter(([, value]) => typeof value === "string") as [string, string][];
  const hasBody = method === "POST" || method === "PATCH";
  return new Request(`http://localhost${path}`, {
    method,
    headers: sent,
    ...(hasBody && { body: Readable.toWeb(Readable.from(request.streamBody())) as ReadableStream, duplex: "half" }),
  });
}

/** Headers that the gateway sets for all interfaces. */
const OWN_HEADERS: ReadonlySet<string> = new Set(["access-control-allow-origin", "content-length"]);

async function toGatewayResponse(response: Response): Promise<GatewayResponse> {
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !OWN_HEADERS.has(name)));
  const text = await response.text();
  return { status: response.status, headers, body: text === "" ? null : Buffer.from(text) };
}
