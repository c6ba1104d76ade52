// Reads as two tenants whose numbers are equal in JavaScript, through every interface.

import type { WebSocket } from "ws";
import { subscribe } from "../../realtime/subscriber.ts";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat, type Target } from "../attack.ts";
import { credentials, JSON_TYPE, tenantToken } from "../callers.ts";
import { TENANTS } from "../schema.ts";

const DOCUMENTS = "{ documents(first: 20) { edges { node { tenant } } } }";

/** Matches `"tenant":9007199254740993`, as a number or as a text. */
const TENANT = /"tenant":\s*"?(\d+)/g;

type Way = {
  readonly name: string;
  run(url: string, tenant: string): ReturnType<typeof ask>;
};

const WAYS: readonly Way[] = [
  {
    name: "table",
    run: (url, tenant) =>
      ask(`${url}/rest/v1/documents?select=tenant&order=id.desc&limit=20`, { headers: headersOf(tenant) }),
  },
  {
    name: "resource",
    run: (url, tenant) => ask(`${url}/api/v1/documents?limit=20&sort=id:desc`, { headers: headersOf(tenant) }),
  },
  { name: "GraphQL", run: (url, tenant) => post(`${url}/graphql`, tenant, { query: DOCUMENTS }) },
  { name: "insert", run: (url, tenant) => post(`${url}/rest/v1/documents`, tenant, { body: `by ${tenant}` }) },
  {
    name: "respond-async",
    run: (url, tenant) =>
      post(`${url}/rest/v1/rpc/write_document`, tenant, { body: `by ${tenant}` }, { Prefer: "respond-async" }),
  },
];

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const asking = TENANTS.flatMap((tenant) => WAYS.map((way) => ({ tenant, way })));
  await Promise.all([
    repeat(target, { times: asking.length, pauseMs: 100 }, async (index) => {
      const { tenant, way } = asking[index]!;
      try {
        const { status, text } = await way.run(target.url, tenant);
        outcomes.count(`${way.name} ${status}`);
        lookForOthers(text, tenant, way.name, outcomes);
      } catch (error) {
        outcomes.count(`${way.name} ${failureOf(error)}`);
      }
    }),
    repeat(target, { times: TENANTS.length, pauseMs: 250 }, async (index) => {
      await follow(target, TENANTS[index]!, outcomes).catch((error) => outcomes.count(`realtime ${failureOf(error)}`));
    }),
  ]);
  return outcomes.result;
};

/** Resolves when the socket has ended, or at the end time. */
async function follow({ url, until }: Target, tenant: string, outcomes: Outcomes): Promise<void> {
  const socket: WebSocket = await subscribe(new URL(url), tenantToken(tenant), { table: "documents" });
  const stop = setTimeout(() => socket.terminate(), Math.max(0, until - Date.now()));
  socket.on("message", (data: Buffer) => {
    const text = String(data);
    if (!text.includes('"postgres_changes"')) return;
    lookForOthers(text, tenant, "realtime", outcomes);
  });
  await new Promise((resolve) => socket.once("close", resolve));
  clearTimeout(stop);
}

function lookForOthers(text: string, tenant: string, way: string, outcomes: Outcomes): void {
  for (const [, other] of text.matchAll(TENANT)) {
    if (other === tenant) outcomes.count(`${way}: own row`);
    else outcomes.fault(`rows of another tenant by ${way}`);
  }
}

function post(url: string, tenant: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  return ask(url, {
    method: "POST",
    headers: { ...headersOf(tenant), ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });
}

function headersOf(tenant: string) {
  return credentials(tenantToken(tenant));
}
