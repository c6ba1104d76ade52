import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@supabase/supabase-js";
import { resuming } from "../../realtime/resuming-socket.ts";
import { anonKey } from "../realtime/service.ts";
import { tokenOf } from "../rest-gateway/table/client.ts";

/** Readers and writers of every interface, and a channel that receives each row. */
export type Traffic = AsyncDisposable & {
  /** The number of times that each was answered: `503 PGRST000`, and by GraphQL `SERVICE_UNAVAILABLE`. */
  readonly refusals: ReadonlyMap<string, number>;
  /** The number before that of its first row. */
  readonly since: number;
  /** Rows that a client was told to be written. */
  readonly acknowledged: readonly number[];
  /** Rows of which a client was told that nothing was written. */
  readonly refused: readonly number[];
  /** Rows that their writers did not read back. */
  readonly unread: readonly number[];
  /** The number of times that the channel has received each row. */
  readonly received: ReadonlyMap<number, number>;
  /** The statuses of the channel since it was first joined which say that changes may have been missed. */
  readonly gaps: readonly string[];
  /** Resolves when each interface has answered well again, to a request that was sent after this was called. */
  allWell(): Promise<void>;
  /** Asks nothing more, and goes on listening. */
  quiet(): Promise<void>;
};

/** `fetch`, or another way from the clients to the service. */
export type Send = (url: string, init?: RequestInit) => Promise<Response>;

type Kind = {
  readonly interface: "table" | "resource" | "graphql";
  /** The number of clients that do it at once. */
  readonly clients: number;
  readonly writes: boolean;
  /** Asks again under the same key until it is done, and then reads the row. */
  readonly isKeyed?: boolean;
  ask(send: Send, url: string, number: number, key: string): Promise<Response>;
};

const JSON_BODY = { "Content-Type": "application/json" };
const KEY = { apikey: anonKey };
const graphql =
  (query: string, variables: object = {}) =>
  (send: Send, url: string) =>
    send(`${url}/graphql`, { method: "POST", headers: JSON_BODY, body: JSON.stringify({ query, variables }) });
const insert = (note: string, headers: (key: string) => Readonly<Record<string, string>> = () => ({})): Kind["ask"] => {
  return (send, url, number, key) =>
    send(`${url}/rest/v1/marks`, {
      method: "POST",
      headers: { ...KEY, ...JSON_BODY, ...headers(key) },
      body: JSON.stringify({ number, note }),
    });
};

/** The mutation has variables, like those of clients: each new document is read and planned, and cached for a while. */
const CREATE_MARK = 'mutation ($number: BigInt!) { createMark(input: {number: $number, note: "by GraphQL"}) { id } }';

/** Writes nothing, so that a replica may answer. */
const READER = tokenOf({ role: "authenticated", sub: randomUUID() });
const WRITERS = 4;
const KINDS: readonly Kind[] = [
  {
    interface: "table",
    clients: 1,
    writes: false,
    ask: (send, url) => send(`${url}/rest/v1/marks?limit=1`, { headers: KEY }),
  },
  {
    interface: "table",
    clients: 1,
    writes: false,
    ask: (send, url) =>
      send(`${url}/rest/v1/marks?limit=2`, { headers: { ...KEY, Authorization: `Bearer ${READER}` } }),
  },
  { interface: "table", clients: WRITERS, writes: true, ask: insert("by table") },
  {
    interface: "table",
    clients: WRITERS,
    writes: true,
    isKeyed: true,
    ask: insert("by key", (key) => ({ "Idempotency-Key": key })),
  },
  { interface: "resource", clients: 1, writes: false, ask: (send, url) => send(`${url}/api/v1/marks?limit=1`) },
  { interface: "graphql", clients: 1, writes: false, ask: graphql("{ marks(first: 1) { edges { node { id } } } }") },
  {
    interface: "graphql",
    clients: WRITERS,
    writes: true,
    ask: (send, url, number) => graphql(CREATE_MARK, { number: String(number) })(send, url),
  },
];

/** Refusals after which the client may rely on it that nothing was written. */
const DEFINITE: ReadonlySet<string> = new Set(["503 PGRST000", "504 PGRST003", "503 53100"]);
/** Clients pause, so that the test does not measure a crowd of impatient ones. */
const PAUSE_MS = 5;

export async function startTraffic(urlNow: () => string, send: Send = fetch): Promise<Traffic> {
  const refusals = new Map<string, number>();
  const acknowledged: number[] = [];
  const refused: number[] = [];
  const unread: number[] = [];
  const clients = KINDS.flatMap((kind) => Array.from({ length: kind.clients }, () => kind));
  const successes = clients.map(() => 0);
  const since = Date.now() * 1_000;
  let last = since;
  let isOn = true;

  const attempt = async (kind: Kind, number: number, key: string): Promise<string | null> => {
    const refusal = await outcome(kind, () => kind.ask(send, urlNow(), number, key));
    if (refusal !== null) refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
    return refusal;
  };

  const write = async (kind: Kind, number: number): Promise<boolean> => {
    const key = randomUUID();
    let refusal = await attempt(kind, number, key);
    while (refusal !== null && kind.isKeyed) {
      await sleep(PAUSE_MS);
      refusal = await attempt(kind, number, key);
    }
    if (refusal === null) acknowledged.push(number);
    else if (DEFINITE.has(refusal)) refused.push(number);
    return refusal === null;
  };

  const readBack = async (number: number): Promise<void> => {
    const response = await fetch(`${urlNow()}/rest/v1/marks?number=eq.${number}`, { headers: KEY }).catch(() => null);
    if (response?.ok && ((await response.json()) as unknown[]).length !== 1) unread.push(number);
  };

  const loop = async (kind: Kind, index: number): Promise<void> => {
    while (isOn) {
      const number = ++last;
      const isDone = kind.writes ? await write(kind, number) : (await attempt(kind, number, "")) === null;
      if (isDone && kind.isKeyed) await readBack(number);
      if (isDone) successes[index]!++;
      await sleep(PAUSE_MS);
    }
  };

  const received = new Map<number, number>();
  const gaps: string[] = [];
  const client = createClient(urlNow(), anonKey, {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    realtime: { reconnectAfterMs: () => 50, transport: resuming(WebSocket) as never },
  });
  await new Promise<void>((joined) => {
    client
      .channel("marks")
      .on("postgres_changes", { event: "INSERT", schema: "public", table: "marks" }, ({ new: row }) => {
        const { number } = row as { number: number };
        received.set(number, (received.get(number) ?? 0) + 1);
      })
      .on("system", {}, ({ status, message }: { status: string; message: string }) => {
        if (status === "error") gaps.push(message);
      })
      .subscribe((status) => {
        if (status === "SUBSCRIBED") joined();
      });
  });
  const running = clients.map(loop);
  const quiet = async () => {
    isOn = false;
    await Promise.all(running);
  };

  return {
    since,
    refusals,
    acknowledged,
    refused,
    unread,
    received,
    gaps,
    async allWell() {
      // The one that is under way now may have been answered before.
      const before = successes.map((count) => count + 1);
      while (successes.some((count, index) => count <= before[index]!)) await sleep(PAUSE_MS);
    },
    quiet,
    async [Symbol.asyncDispose]() {
      await quiet();
      await client.realtime.disconnect();
    },
  };
}

/** Null when all is well. */
async function outcome(kind: Kind, ask: () => Promise<Response>): Promise<string | null> {
  try {
    const response = await ask();
    const text = await response.text();
    if (kind.interface === "graphql") {
      const code = JSON.parse(text).errors?.[0].extensions.code;
      return code ?? null;
    }
    if (response.ok) return null;
    const body = JSON.parse(text);
    return `${response.status} ${body.code ?? body.error.code}`;
  } catch (error) {
    if (error instanceof SyntaxError) throw error;
    return "no answer";
  }
}
