// Benchmarks one row by key through a tool of /mcp, beside the same row through the table interface.

import { type LoadGenerator, startLoadGenerator } from "./comparison/load.ts";
import { type Sample, sampleOfLoad } from "./comparison/measure.ts";
import { startOurs } from "./comparison/ours.ts";
import type { MeasuredServer } from "./comparison/program.ts";
import { signClaims } from "./comparison/sign-claims.ts";
import { verdict } from "./comparison/targets.ts";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { CALLER, ITEMS, OWNERS, SCHEMA } from "./measuring/schema.ts";
import { type Scratch, startScratch } from "./measuring/scratch.ts";
import { printPreface } from "./preface.ts";

const CLIENTS = 16;
const TARGET = 0.8;
const COLUMNS = ["id", "title", "body", "created_at"];

type Sent = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

const CREDENTIALS = { Authorization: `Bearer ${signClaims({ role: "authenticated", sub: CALLER })}` };
const MCP_HEADERS = {
  ...CREDENTIALS,
  "Content-Type": "application/json",
  Accept: "application/json, text/event-stream",
};
const ENVELOPE = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

function toolCall(id: number, version: string): Sent {
  const given = { columns: COLUMNS, where: [{ column: "id", value: id }] };
  const isStateless = version === "2026-07-28";
  const params = { name: "read_items", arguments: given, ...(isStateless && { _meta: ENVELOPE }) };
  return {
    method: "POST",
    path: "/mcp",
    headers: {
      ...MCP_HEADERS,
      "MCP-Protocol-Version": version,
      ...(isStateless && { "Mcp-Method": "tools/call", "Mcp-Name": "read_items" }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }),
  };
}

const WAYS = {
  "/rest/v1": (id: number): Sent => ({
    method: "GET",
    path: `/rest/v1/items?select=${COLUMNS.join(",")}&id=eq.${id}&order=id&limit=50&offset=0`,
    headers: CREDENTIALS,
    body: "",
  }),
  "/mcp, 2026-07-28": (id: number) => toolCall(id, "2026-07-28"),
  "/mcp, 2025-11-25": (id: number) => toolCall(id, "2025-11-25"),
} as const;
const NAMES = Object.keys(WAYS) as (keyof typeof WAYS)[];

export const bench: Bench = async (options) => {
  const { rounds, seconds, print } = options;
  print(`mcp: one row by its key with row-level security, ${CLIENTS} clients on one kept connection each`);
  printPreface(options, []);
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA));
  const env = { MCP: "write", MCP_RATE_LIMIT: "0", REST_REQUIRE_APIKEY: "false" };
  const server = opened.adopt(await startOurs(scratch, scratch.url("authenticator"), { env }), (program) =>
    program.stop(),
  );
  const generator = opened.use(startLoadGenerator());
  for (const name of NAMES) await checkResponse(WAYS[name](0), server.base);
  const samples: Record<string, Sample[]> = Object.fromEntries(NAMES.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const name of NAMES) {
      const sample = await sampleOfWay(WAYS[name], seconds, { server, scratch, generator });
      // The first round warms up.
      if (round > 0) samples[name]!.push(sample);
    }
  }
  for (const name of NAMES) print(lineOf(name, samples[name]!));
  print("  targets");
  const ratios = NAMES.slice(1).map((name) => {
    // The ratio is taken within a round, because other work on the machine varies.
    const ratio = median(samples[name]!.map(({ rate }, round) => rate / samples["/rest/v1"]![round]!.rate));
    print(verdict(`${name}: ${ratio.toFixed(2)} of /rest/v1`, ratio >= TARGET, String(TARGET)));
    return ratio;
  });
  return { samples, isMissed: ratios.some((ratio) => ratio < TARGET) };
};

type WayTools = { readonly server: MeasuredServer; readonly scratch: Scratch; readonly generator: LoadGenerator };

/** Draws the whole rest of a request, because a body's length is in the head. */
function sampleOfWay(way: (id: number) => Sent, seconds: number, { server, ...tools }: WayTools): Promise<Sample> {
  const { pid, base } = server;
  const requests = Array.from({ length: ITEMS / OWNERS }, (_, turn) => bytesOf(way(turn * OWNERS), base));
  const load = { port: Number(base.port), connections: CLIENTS, seconds, values: null, tokens: requests };
  return sampleOfLoad(pid, { ...load, request: ["", "", ""] }, tools);
}

function bytesOf({ method, path, headers, body }: Sent, { host }: URL): string {
  const length = body === "" ? {} : { "Content-Length": Buffer.byteLength(body) };
  const lines = Object.entries({ Host: host, ...headers, ...length }).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${path} HTTP/1.1`, ...lines, "", body].join("\r\n");
}

/** Checks one response: under load nobody reads the responses, and a tool that fails returns 200 too. */
async function checkResponse({ method, path, headers, body }: Sent, base: URL): Promise<void> {
  const response = await fetch(new URL(path, base), { method, headers, ...(body !== "" && { body }) });
  const text = await response.text();
  if (!text.includes("Title 0")) throw new Error(`${path}: ${response.status} ${text}`);
}

function lineOf(name: string, samples: readonly Sample[]): string {
  const rate = median(samples.map((sample) => sample.rate));
  const service = median(samples.map(({ serverTime }) => serverTime ?? Number.NaN));
  const postgres = median(samples.map(({ postgresTime }) => postgresTime ?? Number.NaN));
  const times = `${service.toFixed(0)} µs of the service and ${postgres.toFixed(0)} µs of Postgres each`;
  return `  ${name.padEnd(18)} ${rate.toFixed(0)} requests/s, ${times}`;
}
