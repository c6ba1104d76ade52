import type { RequestListener, Server, ServerResponse } from "node:http";
import type { Config } from "../engine/config/config.ts";
import type { UnderWay } from "../engine/database/under-way.ts";
import type { Logger } from "../engine/log.ts";
import { EXPOSITION_TYPE, formatExposition, type ProcessMetrics } from "../engine/metrics/exposition.ts";
import { drain } from "./drain.ts";
import { pathOf } from "./http.ts";
import { addressOf, listen } from "./listen.ts";

/** What operators may ask of the service, in however many processes it runs. */
export type Operable = {
  isReady(): Promise<boolean>;
  /** Of each process. */
  measure(): Promise<readonly ProcessMetrics[]>;
  underWay(): Promise<readonly UnderWay[]>;
};

export type Admin = { readonly url: string; close(): Promise<void> };

type Options = {
  readonly config: Config;
  /** Null: it does not serve yet. */
  readonly service: () => Operable | null;
  readonly log: Pick<Logger, "error">;
};

type Answer = { readonly status: number; readonly type?: string; readonly body?: string };

/** A port of its own for operators and their programs: `/live` and `/ready` as PostgREST has them, `/metrics`, `/statements`. */
export async function openAdmin({ config, service, log }: Options): Promise<Admin> {
  const answerTo = async (path: string): Promise<Answer> => {
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
    if (request.method !== "GET" && request.method !== "HEAD") return write(response, { status: 405 });
    answerTo(pathOf(request.url!))
      .catch((error: unknown): Answer => {
        log.error({ err: error, path: request.url }, "an operator's question could not be answered");
        return { status: 500 };
      })
      .then((answer) => write(response, answer));
  };

  const { adminHost: host, adminPort } = config;
  const settings = { host: "ADMIN_HOST", port: "ADMIN_PORT" };
  const place = { ...config, host, port: adminPort ?? 0, settings, httpsCertificate: null, httpsKey: null };
  const server: Server = await listen(handle, place);
  return { url: addressOf(server, host), close: () => drain(server, 0) };
}

function write(response: ServerResponse, { status, type, body = "" }: Answer): void {
  response.writeHead(status, { ...(type && { "Content-Type": type }), "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}
