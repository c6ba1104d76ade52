import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { API_KEY } from "../comparison/tokens.ts";
import { percentilesOf } from "../measuring/percentile.ts";

/** A client that sends requests whether or not the earlier ones have a response. */
export type Client = {
  readonly name: string;
  readonly perSecond: number;
  /** The client's loopback address, by which the service distinguishes anonymous callers. */
  readonly from?: string;
  readonly token: string | null;
  readonly method?: "GET" | "POST";
  readonly body?: string;
  /** Returns the path below `/rest/v1/` of the request with this number. */
  readonly path: (index: number) => string;
};

type ClientResult = {
  readonly name: string;
  readonly requests: number;
  /** The failures by status; 0 if there was no response. */
  readonly failures: Readonly<Record<string, number>>;
  /** The latency in milliseconds, including failures. */
  readonly p50: number;
  readonly p99: number;
};

/** Sends the requests of all clients for this many seconds, and waits for the responses. */
export function runClients(base: URL, clients: readonly Client[], seconds: number): Promise<ClientResult[]> {
  return Promise.all(clients.map((client) => runClient(base, client, seconds)));
}

async function runClient(base: URL, client: Client, seconds: number): Promise<ClientResult> {
  const agent = new Agent({ keepAlive: true, ...(client.from && { localAddress: client.from }) });
  const count = Math.ceil(client.perSecond * seconds);
  const startedAt = performance.now();
  const responses = [];
  for (let index = 0; index < count; index++) {
    await sleep(Math.max(0, startedAt + (1_000 * index) / client.perSecond - performance.now()));
    responses.push(send(base, client, agent, index));
  }
  const results = await Promise.all(responses);
  agent.destroy();
  const failures: Record<string, number> = {};
  for (const { status } of results) if (status >= 300 || status === 0) failures[status] = (failures[status] ?? 0) + 1;
  const times = results.map(({ milliseconds }) => milliseconds);
  return { name: client.name, requests: count, failures, ...percentilesOf(times) };
}

type Response = { readonly status: number; readonly milliseconds: number };

function send(base: URL, client: Client, agent: Agent, index: number): Promise<Response> {
  const { token, method = "GET", body, path } = client;
  const sentAt = performance.now();
  const headers = {
    apikey: API_KEY,
    ...(token !== null && { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && {
      "Content-Type": "application/json",
      "Content-Length": String(Buffer.byteLength(body)),
    }),
  };
  return new Promise((resolve) => {
    const end = (status: number) => resolve({ status, milliseconds: performance.now() - sentAt });
    const sent = request(new URL(path(index), base), { method, agent, headers }, (response) => {
      response.on("end", () => end(response.statusCode!)).resume();
    });
    sent.on("error", () => end(0)).end(body);
  });
}

export function describeClient({ name, requests, failures, p50, p99 }: ClientResult): string {
  const failed = Object.values(failures).reduce((sum, times) => sum + times, 0);
  const byStatus = Object.entries(failures).map(([status, times]) => `${times} x ${status}`);
  const told = failed === 0 ? "none failed" : `${failed} failed (${byStatus.join(", ")})`;
  return `    ${name.padEnd(48)}p50 ${p50.toFixed(0).padStart(6)} ms   p99 ${p99.toFixed(0).padStart(6)} ms   ${told} of ${requests}`;
}
