import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@supabase/supabase-js";
import { resuming } from "#realtime";
import { signClaims } from "../comparison/sign-claims.ts";

export type Request = {
  readonly isWrite: boolean;
  /** True if the request is repeated with the same Idempotency-Key until it succeeds. */
  readonly isKeyed: boolean;
  /** The number of the row that it writes; 0 for reads. */
  readonly number: number;
  /** The start time by `Date.now()`. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** The failure; null if the request succeeded. */
  readonly failure: string | null;
};

/** A gap, from the last row before its report to the first row after it. */
export type Gap = { readonly from: number; readonly told: number; until: number };

export type Subscriber = {
  /** The number of times that each row was received. */
  readonly received: ReadonlyMap<number, number>;
  readonly gaps: readonly Gap[];
  /** Returns the number of times that the connection was closed. */
  readonly closes: () => number;
  close(): Promise<void>;
};

/** The clients of all interfaces, and the subscribers. */
export type Traffic = {
  readonly label: string;
  readonly requests: readonly Request[];
  readonly subscribers: readonly Subscriber[];
  /** Resolves when all requests have ended; the subscribers stay. */
  quiet(): Promise<void>;
  close(): Promise<void>;
};

type Kind = {
  readonly clients: number;
  readonly isWrite: boolean;
  readonly isKeyed?: boolean;
  readonly isGraphql?: boolean;
  send(url: string, number: number, key: string): Promise<Response>;
};

const PAUSE_MS = 40;
const SUBSCRIBERS = 3;
/** The time after which a response counts as missing. */
const LONGEST_MS = 45_000;
export const HANGING = "no answer in 45 s";
const API_KEY = signClaims({ role: "anon" });
const CREATE_MARK =
  "mutation ($number: BigInt!, $note: String) { createMark(input: {number: $number, note: $note}) { id } }";

function kindsFor(label: string): Kind[] {
  const post = (url: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
    fetch(url, {
      method: "POST",
      headers: { apikey: API_KEY, "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(LONGEST_MS),
    });
  const get = (url: string) => fetch(url, { headers: { apikey: API_KEY }, signal: AbortSignal.timeout(LONGEST_MS) });
  return [
    { clients: 2, isWrite: true, send: (url, number) => post(`${url}/rest/v1/marks`, { number, note: label }) },
    {
      clients: 2,
      isWrite: true,
      isKeyed: true,
      send: (url, number, key) => post(`${url}/rest/v1/marks`, { number, note: label }, { "Idempotency-Key": key }),
    },
    {
      clients: 2,
      isWrite: true,
      isGraphql: true,
      send: (url, number) =>
        post(`${url}/graphql`, { query: CREATE_MARK, variables: { number: String(number), note: label } }),
    },
    { clients: 2, isWrite: false, send: (url) => get(`${url}/rest/v1/marks?limit=1`) },
    { clients: 1, isWrite: false, send: (url) => get(`${url}/api/v1/marks?limit=1`) },
    {
      clients: 1,
      isWrite: false,
      isGraphql: true,
      send: (url) => post(`${url}/graphql`, { query: "{ marks(first: 1) { edges { node { id } } } }" }),
    },
  ];
}

/** Starts traffic; each written row has the label. */
export async function startTraffic(url: string, label: string): Promise<Traffic> {
  const subscribers = await Promise.all(Array.from({ length: SUBSCRIBERS }, () => subscribe(url, API_KEY, label)));
  const requests: Request[] = [];
  let isOn = true;
  let last = Date.now() * 1_000;

  const attempt = async ({ isWrite, isKeyed = false, isGraphql = false, send }: Kind, number: number, key: string) => {
    const startedAt = Date.now();
    const failure = await failureOf(() => send(url, number, key), isGraphql);
    requests.push({ isWrite, isKeyed, number: isWrite ? number : 0, startedAt, endedAt: Date.now(), failure });
    return failure;
  };
  const work = async (kind: Kind) => {
    while (isOn) {
      const number = ++last;
      const key = randomUUID();
      while ((await attempt(kind, number, key)) !== null && kind.isKeyed) await sleep(PAUSE_MS);
      await sleep(PAUSE_MS);
    }
  };
  const working = kindsFor(label).flatMap((kind) => Array.from({ length: kind.clients }, () => work(kind)));
  return {
    label,
    requests,
    subscribers,
    async quiet() {
      isOn = false;
      await Promise.all(working);
    },
    close: async () => void (await Promise.all(subscribers.map((subscriber) => subscriber.close()))),
  };
}

/** Opens a client of supabase-js that resumes after each lost connection, and receives the rows with one writer's label. */
async function subscribe(url: string, apiKey: string, label: string): Promise<Subscriber> {
  const received = new Map<number, number>();
  const gaps: Gap[] = [];
  let last = Date.now();
  let closes = 0;
  class CountingSocket extends WebSocket {
    constructor(...address: ConstructorParameters<typeof WebSocket>) {
      super(...address);
      this.addEventListener("close", () => closes++);
    }
  }
  const client = createClient(url, apiKey, {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    realtime: { reconnectAfterMs: () => 50, transport: resuming(CountingSocket) as never },
  });
  const changes = { event: "INSERT", schema: "public", table: "marks", filter: `note=eq.${label}` } as const;
  await new Promise<void>((joined) => {
    client
      .channel("marks")
      .on("postgres_changes", changes, ({ new: row }) => {
        const { number } = row as { number: number };
        received.set(number, (received.get(number) ?? 0) + 1);
        last = Date.now();
        const gap = gaps.at(-1);
        if (gap?.until === Number.POSITIVE_INFINITY) gap.until = last;
      })
      .on("system", {}, ({ status }: { status: string }) => {
        if (status === "error") gaps.push({ from: last, told: Date.now(), until: Number.POSITIVE_INFINITY });
        else if (status === "ok") joined();
      })
      .subscribe();
  });
  return {
    received,
    gaps,
    closes: () => closes,
    close: async () => void (await client.realtime.disconnect()),
  };
}

/** Returns null if the request succeeded. */
async function failureOf(send: () => Promise<Response>, isGraphql: boolean): Promise<string | null> {
  try {
    const response = await send();
    const text = await response.text();
    if (isGraphql) {
      const { errors } = JSON.parse(text);
      return errors ? (errors[0].extensions?.code ?? errors[0].message) : null;
    }
    if (response.ok) return null;
    const body = JSON.parse(text);
    return `${response.status} ${body.code ?? body.error?.code}`;
  } catch (error) {
    return (error as Error).name === "TimeoutError" ? HANGING : `no answer: ${(error as Error).message}`;
  }
}
