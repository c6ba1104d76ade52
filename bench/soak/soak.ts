import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startProgram } from "../comparison/program.ts";
import { JWT_SECRET, signClaims } from "../comparison/sign-claims.ts";
import { startContent } from "../graphql/content.ts";
import { freePort } from "../measuring/free-port.ts";
import { findInspector, type Heap, type HeapObjects, openHeap, type ProcessMemory } from "../measuring/heap.ts";
import { ACTIVITIES, type Activity, type Client } from "./activities.ts";

const ROOT = join(import.meta.dirname, "../..");
const CLIENTS = 4;
const SAMPLES = 60;
const SHORTEST_PAUSE_MS = 500;
/** The part of the samples in which caches fill and code is compiled, so that memory grows. */
const WARM_UP = 1 / 3;
const MAX_GROWN = 25;
const PASSWORD = "Tangerine-Boat-7";

export type Sample = {
  readonly seconds: number;
  /** The number of completed activities. */
  readonly done: number;
  readonly heapBytes: number;
  readonly memory: ProcessMemory;
  readonly openFiles: number | null;
  readonly sessions: number;
};

type Course = {
  readonly done: number;
  /** The failures, with their number. */
  readonly failures: Readonly<Record<string, number>>;
  readonly samples: readonly Sample[];
  /** The growth of the heap after a full collection, without the warm-up. */
  readonly mebibytesPerHour: number;
  readonly bytesPerActivity: number;
  /** Two standard errors of the growth: a value that is lower by this much has a probability of one in forty. */
  readonly bytesPerActivityError: number;
  /** The objects with a larger number at the end than after the warm-up, the largest first; empty without snapshots. */
  readonly grown: readonly GrownObjects[];
};

export type GrownObjects = { readonly name: string; readonly count: number; readonly bytes: number };

type SoakOptions = {
  /** The minimum number of activities. */
  readonly activities?: number;
  /** The part of the time in which each client is busy. */
  readonly load?: number;
  /** True if snapshots of the heap are compared; they take memory themselves. */
  readonly hasSnapshots?: boolean;
};

type Soak = AsyncDisposable & {
  readonly heap: Heap;
  run(seconds: number, options?: SoakOptions): Promise<Course>;
};

/** Starts the service on its own cluster, with clients that do all activities. */
export async function openSoak(): Promise<Soak> {
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  const inspectorPort = await freePort();
  const program = await startProgram({
    name: "ours",
    command: process.execPath,
    args: [`--inspect=127.0.0.1:${inspectorPort}`, join(ROOT, "server.js")],
    env: (port) => ({
      PORT: port,
      DATABASE_URL: scratch.url("authenticator"),
      OWNER_DATABASE_URL: scratch.url("postgres"),
      JWT_SECRET,
      LOG_LEVEL: "error",
      RATE_LIMIT: "1000000000",
      LOAD_SHEDDING: "false",
      WEB_CONCURRENCY: "1",
    }),
    dialect: "tables",
    prefix: "/",
  });
  opened.adopt(program, () => program.stop());
  const heap = opened.use(await openHeap(await findInspector(inspectorPort)));
  const client = await signUp(program.base.origin);
  const look = async (): Promise<Omit<Sample, "seconds" | "done">> => ({
    heapBytes: await heap.used(),
    memory: await heap.memory(),
    openFiles: (await readdir(`/proc/${program.pid}/fd`).catch(() => null))?.length ?? null,
    sessions: (await scratch.execute("select count(*)::int as count from pg_stat_activity where datname is not null"))
      .rows[0].count,
  });
  const everything = opened.move();
  return {
    heap,
    run: (seconds, options = {}) => soak(client, { look, heap }, seconds, options),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

async function soak(
  client: Client,
  { look, heap }: { readonly look: () => Promise<Omit<Sample, "seconds" | "done">>; readonly heap: Heap },
  seconds: number,
  { activities = 0, load = 1, hasSnapshots = false }: SoakOptions,
): Promise<Course> {
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1000;
  const failures: Record<string, number> = {};
  let done = 0;
  let isOn = true;
  const work = async (offset: number) => {
    for (let turn = offset; isOn; turn++) {
      const activity = TURNS[turn % TURNS.length]!;
      const begunAt = performance.now();
      try {
        await activity.run(client);
      } catch (error) {
        const failure = `${activity.name}: ${(error as Error).message}`;
        failures[failure] = (failures[failure] ?? 0) + 1;
      }
      done++;
      if (load < 1) await sleep((performance.now() - begunAt) * (1 / load - 1));
    }
  };
  const working = Array.from({ length: CLIENTS }, (_, index) => work(Math.floor((index * TURNS.length) / CLIENTS)));
  const samples: Sample[] = [];
  let before: HeapObjects | null = null;
  while (elapsed() < seconds || done < activities) {
    await sleep(Math.max(SHORTEST_PAUSE_MS, (seconds * 1000) / SAMPLES));
    samples.push({ ...(await look()), seconds: elapsed(), done });
    if (hasSnapshots && elapsed() >= seconds * WARM_UP) before ??= await heap.objects();
  }
  isOn = false;
  await Promise.all(working);
  const grown = before ? grownObjects(before, await heap.objects()) : [];
  const warm = samples.slice(Math.floor(samples.length * WARM_UP));
  const perSecond = lineThrough(warm.map(({ seconds: x, heapBytes: y }) => ({ x, y })));
  const perActivity = lineThrough(warm.map(({ done: x, heapBytes: y }) => ({ x, y })));
  return {
    done,
    failures,
    samples,
    mebibytesPerHour: (perSecond.slope * 3600) / 2 ** 20,
    bytesPerActivity: perActivity.slope,
    bytesPerActivityError: 2 * perActivity.error,
    grown,
  };
}

function grownObjects(before: HeapObjects, after: HeapObjects): GrownObjects[] {
  return [...after]
    .map(([name, { count, bytes }]) => {
      const earlier = before.get(name);
      return { name, count: count - (earlier?.count ?? 0), bytes: bytes - (earlier?.bytes ?? 0) };
    })
    .filter(({ bytes }) => bytes > 0)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, MAX_GROWN);
}

/** The activities, each as often as its share, spread evenly. */
const TURNS: readonly Activity[] = ACTIVITIES.flatMap((activity) =>
  Array.from({ length: activity.share }, (_, index) => ({ activity, place: (index + 0.5) / activity.share })),
)
  .toSorted((a, b) => a.place - b.place)
  .map(({ activity }) => activity);

async function signUp(url: string): Promise<Client> {
  const credentials = { username: "soak@example.org", password: PASSWORD };
  const response = await fetch(`${url}/auth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email: credentials.username, name: "Soak", password: PASSWORD }),
  });
  if (!response.ok) throw new Error(`Nobody can register: ${await response.text()}`);
  const { user } = (await response.json()) as { user: { id: string } };
  return {
    url,
    apiKey: signClaims({ role: "anon" }),
    token: signClaims({ sub: String(user.id), role: "authenticated" }),
    credentials,
  };
}

export type Point = { readonly x: number; readonly y: number };
export type Line = {
  readonly slope: number;
  /** The standard error of the slope: the true value is within two of them with a probability of 95 %. */
  readonly error: number;
};

/** Fits a straight line by least squares. */
function lineThrough(points: readonly Point[]): Line {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = { x: mean(points.map(({ x }) => x)), y: mean(points.map(({ y }) => y)) };
  const spread = points.reduce((sum, { x }) => sum + (x - middle.x) ** 2, 0);
  const slope = points.reduce((sum, { x, y }) => sum + (x - middle.x) * (y - middle.y), 0) / spread;
  const missed = points.reduce((sum, { x, y }) => sum + (y - middle.y - slope * (x - middle.x)) ** 2, 0);
  return { slope, error: Math.sqrt(missed / (points.length - 2) / spread) };
}
