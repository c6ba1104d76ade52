import type { RequestListener, Server, ServerResponse } from "node:http";
import type { Config } from "#config";
import { EXPOSITION_TYPE, formatExposition, type ProcessMetrics, type SharedActivity } from "#http/observability";
import type { RunningStatement } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { drain } from "./drain.ts";
import { pathOfUrl } from "./request.ts";
import { openServer, serverUrl } from "./server.ts";

/** The operations that operators use on one process or on a cluster. */
export type ServiceOperations = SharedActivity & {
  isReady(): Promise<boolean>;
  /** The metrics of each process. */
  measure(): Promise<readonly ProcessMetrics[]>;
  underWay(): Promise<readonly RunningStatement[]>;
};

export type AdminServer = { readonly url: string; close(): Promise<void> };

type AdminOptions = {
  readonly config: Config;
  /** Null until the service has started. */
  readonly service: () => ServiceOperations | null;
  readonly log: Pick<Logger, "error">;
};

type AdminResponse = { readonly status: number; readonly type?: string; readonly body?: string };

/**
 * The admin port: `/live` and `/ready` as in PostgREST, `/metrics` for Prometheus, `/statements` for running
 * statements.
 */
export async function openAdminServer({ config, service, log }: AdminOptions): Promise<AdminServer> {
  const respondTo = async (path: string): Promise<AdminResponse> => {
    const running = service();
    switch (path) {
      case "/live":
        return { status: 200 };
      case "/ready":
        return { status: (await running?.isReady()) ? 200 : 503 };
      case "/metrics":
        return { status: 200, type: EXPOSITION_TYPE, body: await formatExposition((await running?.measure()) ?? []) };
      case "/statements":
        return { status: 200, type: "application/json", body: JSON.stringify((await running?.underWay()) ?? []) };
      default:
        return { status: 404 };
    }
  };

  const handle: RequestListener = (request, response) => {
    if (request.method !== "GET" && request.method !== "HEAD") return writeResponse(response, { status: 405 });
    respondTo(pathOfUrl(request.url!))
      .catch((error: unknown): AdminResponse => {
        log.error({ err: error, path: request.url }, "an operator's request could not be answered");
        return { status: 500 };
      })
      .then((answer) => writeResponse(response, answer));
  };

  const { adminHost: host, adminPort } = config;
  const settings = { host: "ADMIN_HOST", port: "ADMIN_PORT" };
  const listenOptions = { ...config, host, port: adminPort ?? 0, settings, httpsCertificate: null, httpsKey: null };
  const server: Server = await openServer(handle, listenOptions);
  return { url: serverUrl(server, host), close: () => drain(server, 0) };
}

function writeResponse(response: ServerResponse, { status, type, body = "" }: AdminResponse): void {
  response.writeHead(status, { ...(type && { "Content-Type": type }), "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}
