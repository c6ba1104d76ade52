// A row by its key by a tool of /mcp, beside the same row by the table interface.

import { Agent, request } from "node:http";
import { startOurs } from "./comparison/ours.ts";
import { signClaims } from "./comparison/sign-claims.ts";
import { verdict } from "./comparison/targets.ts";
import type { Bench } from "./kind.ts";
import { median } from "./median.ts";
import { printPreface } from "./preface.ts";
import { CALLER, ITEMS, OWNERS, SCHEMA } from "./schema.ts";
import { startScratch } from "./scratch.ts";

const CLIENTS = 16;
const TARGET = 0.8;
const COLUMNS = ["id", "title", "body", "created_at"];

type Sent = {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
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
      ...{ ...MCP_HEADERS, "MCP-Protocol-Version": version },
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
  const rates: Record<string, number[]> = Object.fromEntries(NAMES.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const name of NAMES) {
      const rate = await rateOf(WAYS[name], server.base, seconds);
      // The first round warms up.
      if (round > 0) rates[name]!.push(rate);
    }
  }
  for (const name of NAMES) print(`  ${name.padEnd(18)} ${median(rates[name]!).toFixed(0)} requests/s`);
  print("  targets");
  const ratios = NAMES.slice(1).map((name) => {
    // Within a round, because other work on the machine varies.
    const ratio = median(rates[name]!.map((rate, round) => rate / rates["/rest/v1"]![round]!));
    print(verdict(`${name}: ${ratio.toFixed(2)} of /rest/v1`, ratio >= TARGET, String(TARGET)));
    return ratio;
  });
  return { rates, isMissed: ratios.some((ratio) => ratio < TARGET) };
};

/** Requests per second of all clients. */
async function rateOf(way: (id: number) => Sent, base: URL, seconds: number): Promise<number> {
  const begun = performance.now();
  const until = begun + seconds * 1_000;
  let done = 0;
  const repeat = async (_: unknown, client: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let turn = client; performance.now() < until; turn += CLIENTS) {
      await send(way((turn * OWNERS) % ITEMS), base, agent);
      done++;
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: CLIENTS }, repeat));
  return done / ((performance.now() - begun) / 1_000);
}

function send({ method, path, headers, body }: Sent, base: URL, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = body === "" ? {} : { "Content-Length": Buffer.byteLength(body) };
    const sent = request(
      new URL(path, base),
      { method, agent, headers: { ...headers, ...length } },
      async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk);
        const isRow = response.statusCode === 200 && Buffer.concat(chunks).includes("Title ");
        if (isRow) resolve();
        else reject(new Error(`${response.statusCode}: ${Buffer.concat(chunks)}`));
      },
    );
    sent.on("error", reject).end(body);
  });
}
