// Inserts in a batch, beside the same inserts as requests one after the other.

import { Agent, request } from "node:http";
import { startOurs } from "./comparison/ours.ts";
import { signClaims } from "./comparison/sign-claims.ts";
import { verdict } from "./comparison/targets.ts";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { CALLER, SCHEMA } from "./measuring/schema.ts";
import { startScratch } from "./measuring/scratch.ts";
import { printPreface } from "./preface.ts";

const INSERTS = 20;
const CLIENTS = [1, 8];
/** The target for one client. */
const TARGET = 5;

const PATH = "events?select=id";
const INSERT = { kind: "viewed", payload: { page: "/articles/7", milliseconds: 1_250 } };
const RETURNED = { Prefer: "return=representation" };
const SINGLE = JSON.stringify(INSERT);
const BATCH = JSON.stringify(
  Array.from({ length: INSERTS }, () => ({ method: "POST", path: `/${PATH}`, headers: RETURNED, body: INSERT })),
);

type Post = (path: string, type: string, body: string, status: number) => Promise<void>;
type BatchWork = (post: Post) => Promise<void>;

const WORKS: Readonly<Record<"requests" | "batch", BatchWork>> = {
  async requests(post) {
    for (let index = 0; index < INSERTS; index++) await post(PATH, "application/json", SINGLE, 201);
  },
  batch: (post) => post("", "application/vnd.batch+json", BATCH, 200),
};

export const bench: Bench = async (options) => {
  const { rounds, seconds, print } = options;
  print(`batch: ${INSERTS} inserts with row-level security, in one batch and as requests one after the other`);
  printPreface(options, []);
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA));
  const server = opened.adopt(await startOurs(scratch, scratch.url("authenticator")), (program) => program.stop());
  const outcomes = [];
  for (const clients of CLIENTS) {
    const times = { requests: [] as number[], batch: [] as number[] };
    for (let round = 0; round <= rounds; round++) {
      for (const name of ["requests", "batch"] as const) {
        const time = await timeOf(WORKS[name], server.base, clients, seconds);
        // The first round warms up.
        if (round > 0) times[name].push(time);
      }
    }
    const [requests, batch] = [median(times.requests), median(times.batch)];
    outcomes.push({ clients, requests, batch, ratio: requests / batch });
    print(`  ${clients} ${clients === 1 ? "client, on one kept connection" : "clients, on one kept connection each"}`);
    print(
      `    requests ${requests.toFixed(2)} ms, batch ${batch.toFixed(2)} ms: ${(requests / batch).toFixed(1)} times as fast`,
    );
  }
  const { ratio } = outcomes[0]!;
  print("  targets");
  print(verdict(`one client: ${ratio.toFixed(1)} times as fast`, ratio >= TARGET, String(TARGET)));
  return { outcomes, isMissed: ratio < TARGET };
};

/** Returns the milliseconds for all inserts of one client. */
async function timeOf(work: BatchWork, base: URL, clients: number, seconds: number): Promise<number> {
  const until = performance.now() + seconds * 1_000;
  const repeat = async (): Promise<readonly number[]> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const post = openClient(base, agent);
    const times: number[] = [];
    while (performance.now() < until) {
      const begun = performance.now();
      await work(post);
      times.push(performance.now() - begun);
    }
    agent.destroy();
    return times;
  };
  return median((await Promise.all(Array.from({ length: clients }, repeat))).flat());
}

function openClient(base: URL, agent: Agent): Post {
  const token = signClaims({ role: "authenticated", sub: CALLER });
  return (path, type, body, status) =>
    new Promise((resolve, reject) => {
      const headers = {
        ...RETURNED,
        apikey: token,
        Authorization: `Bearer ${token}`,
        "Content-Type": type,
        "Content-Length": Buffer.byteLength(body),
      };
      const sent = request(new URL(path, base), { method: "POST", agent, headers }, (response) => {
        response.resume().on("error", reject).on("end", resolve);
        if (response.statusCode !== status) reject(new Error(`The response is ${response.statusCode}`));
      });
      sent.on("error", reject).end(body);
    });
}
