import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@supabase/supabase-js";
import { resuming } from "../../realtime/resuming-socket.ts";
import { anonKey } from "../realtime/service.ts";

/** Readers and writers of every interface, and one who is told of each row. */
export type Traffic = AsyncDisposable & {
  /** How often each was told: `503 PGRST000`, and by GraphQL `SERVICE_UNAVAILABLE`. */
  readonly refusals: ReadonlyMap<string, number>;
  /** The number before that of its first row. */
  readonly since: number;
  /** Rows that a client was told to be written. */
  readonly acknowledged: readonly number[];
  /** Rows of which the channel has told. */
  readonly told: ReadonlySet<number>;
  /** What the channel has said of itself since it was first joined: that something may have been missed. */
  readonly gaps: readonly string[];
  /** Resolves when each interface has answered well again, to a request that was sent after this was called. */
  allWell(): Promise<void>;
  /** Asks nothing more, and goes on listening. */
  quiet(): Promise<void>;
};

type Kind = { readonly face: string; ask(url: string, id: number): Promise<Response>; readonly writes: boolean };

const JSON_BODY = { "Content-Type": "application/json" };
const KEY = { apikey: anonKey };
const graphql =
  (query: string, variables: object = {}) =>
  (url: string) =>
    fetch(`${url}/graphql`, { method: "POST", headers: JSON_BODY, body: JSON.stringify({ query, variables }) });

/** With variables, as clients do: each document that is new is read and planned, and remembered for a while. */
const CREATE_MARK = 'mutation ($id: ID!) { createMark(input: {id: $id, note: "by GraphQL"}) { id } }';

const KINDS: readonly Kind[] = [
  { face: "/rest/v1", writes: false, ask: (url) => fetch(`${url}/rest/v1/marks?limit=1`, { headers: KEY }) },
  {
    face: "/rest/v1",
    writes: true,
    ask: (url, id) =>
      fetch(`${url}/rest/v1/marks`, {
        method: "POST",
        headers: { ...KEY, ...JSON_BODY },
        body: JSON.stringify({ id, note: "by table" }),
      }),
  },
  { face: "/api/v1", writes: false, ask: (url) => fetch(`${url}/api/v1/marks?limit=1`) },
  {
    face: "/graphql",
    writes: false,
    ask: graphql("{ marks(first: 1) { edges { node { id } } } }"),
  },
  {
    face: "/graphql",
    writes: true,
    ask: (url, id) => graphql(CREATE_MARK, { id })(url),
  },
];

/** So that a crowd of impatient clients is not what is measured. */
const PAUSE_MS = 5;

export async function startTraffic(urlNow: () => string): Promise<Traffic> {
  const refusals = new Map<string, number>();
  const acknowledged: number[] = [];
  const successes = KINDS.map(() => 0);
  const since = Date.now() * 1_000;
  let last = since;
  let isOn = true;

  const loop = async (kind: Kind, index: number): Promise<void> => {
    while (isOn) {
      const id = ++last;
      const refusal = await outcome(kind, urlNow(), id);
      if (refusal !== null) refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
      else {
        successes[index]!++;
        if (kind.writes) acknowledged.push(id);
      }
      await sleep(PAUSE_MS);
    }
  };

  const told = new Set<number>();
  const gaps: string[] = [];
  const client = createClient(urlNow(), anonKey, {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    realtime: { reconnectAfterMs: () => 50, transport: resuming(WebSocket) as never },
  });
  await new Promise<void>((joined) => {
    client
      .channel("marks")
      .on("postgres_changes", { event: "INSERT", schema: "public", table: "marks" }, ({ new: row }) => {
        told.add((row as { id: number }).id);
      })
      .on("system", {}, ({ status, message }: { status: string; message: string }) => {
        if (status === "error") gaps.push(message);
      })
      .subscribe((status) => {
        if (status === "SUBSCRIBED") joined();
      });
  });
  const running = KINDS.map(loop);
  const quiet = async () => {
    isOn = false;
    await Promise.all(running);
  };

  return {
    since,
    refusals,
    acknowledged,
    told,
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
async function outcome({ face, ask }: Kind, url: string, id: number): Promise<string | null> {
  try {
    const response = await ask(url, id);
    const text = await response.text();
    if (face === "/graphql") {
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
