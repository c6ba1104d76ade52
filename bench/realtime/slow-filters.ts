// Measures the delay of changes for honest subscribers beside others whose filters take for ever.

import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { startOurs } from "../comparison/ours.ts";
import { signClaims } from "../comparison/sign-claims.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { percentilesOf } from "../measuring/percentile.ts";
import { type Scratch, startScratch } from "../measuring/scratch.ts";
import { NEWS } from "./news.ts";
import { subscribe } from "./subscriber.ts";

/** The tables, of which everybody may read every row. */
const ESSAYS = `
  create table flashes (id bigint generated always as identity primary key, word text not null, price numeric not null);
  create table essays (id bigint generated always as identity primary key, body text not null);
  grant select on flashes, essays to anon, authenticated;
  alter table flashes replica identity full;
  alter table essays replica identity full;
  alter publication supabase_realtime add table flashes, essays`;

const INSERT = `
  with essay as (insert into essays (body) select repeat(md5(random()::text), 60))
  insert into flashes (word, price) values ('flash', 7)`;

const HOSTILE = [0, 5, 50];
const PAUSE_MS = 50;
const REJOIN_PAUSE_MS = 250;
/** Two subscribers without a filter, one whose filter only Postgres can apply, and one with a pattern. */
const HONEST: readonly { readonly name: string; readonly filter?: string }[] = [
  { name: "no filter" },
  { name: "price=gt.5", filter: "price=gt.5" },
  { name: "word=like.fl%", filter: "word=like.fl%" },
];
const EACH = 5;

export async function benchSlowFilters({ rounds, seconds, print }: BenchOptions): Promise<object> {
  await using scratch = await startScratch(`${NEWS}; ${ESSAYS}`);
  print("sending a change to honest subscribers beside others with very slow regular expressions");
  const results: Record<string, object> = {};
  for (const kind of ["anonymous", "signed-in"] as const) {
    for (const sockets of HOSTILE) {
      const server = await startOurs(scratch, scratch.url("authenticator"));
      try {
        const hostile = startHostile(server.base, kind, sockets);
        const delays = await measure(scratch, server.base, 2 * rounds * seconds);
        hostile.stop();
        const cells = HONEST.map(({ name }) => {
          const { times, sent, lost } = delays.get(name)!;
          const missing = sent * EACH - times.length;
          return { name, ...percentilesOf(times), missing, lost };
        });
        const told = cells.map(
          ({ name, p50, p99, missing, lost }) =>
            `${name} p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms${missing > 0 ? `, ${missing} missing, ${lost} ended` : ""}`,
        );
        print(`  ${String(sockets).padStart(3)} ${kind}, ${hostile.joins()} joins: ${told.join("; ")}`);
        results[`${sockets} ${kind}`] = cells;
      } finally {
        await server.stop();
      }
    }
  }
  return results;
}

type Delays = { readonly times: number[]; sent: number; lost: number };

async function measure(scratch: Scratch, base: URL, seconds: number): Promise<ReadonlyMap<string, Delays>> {
  const insertedAt: number[] = [];
  const delays = new Map<string, Delays>();
  const sockets: WebSocket[] = [];
  const token = signClaims({ role: "authenticated", sub: "honest" });
  for (const { name, filter } of HONEST) {
    const own: Delays = { times: [], sent: 0, lost: 0 };
    delays.set(name, own);
    for (let number = 0; number < EACH; number++) {
      const socket = await subscribe(base, token, { table: "flashes", ...(filter && { filter }) });
      let count = 0;
      socket.on("message", (data: Buffer) => {
        if (data.includes('"phx_error"')) own.lost++;
        if (data.includes('"INSERT"')) own.times.push(performance.now() - insertedAt[count++]!);
      });
      sockets.push(socket);
    }
  }
  const until = performance.now() + seconds * 1_000;
  while (performance.now() < until) {
    insertedAt.push(performance.now());
    await scratch.execute(INSERT);
    await sleep(PAUSE_MS);
  }
  await sleep(3_000);
  for (const own of delays.values()) own.sent = insertedAt.length;
  for (const socket of sockets) socket.terminate();
  return delays;
}

/** Starts hostile subscribers; each returns with another pattern when it is refused or ended. */
function startHostile(base: URL, kind: "anonymous" | "signed-in", sockets: number) {
  let isOver = false;
  let joins = 0;
  const open = new Set<WebSocket>();
  const attack = async (index: number) => {
    const claims = kind === "anonymous" ? { role: "anon" } : { role: "authenticated", sub: `hostile ${index}` };
    while (!isOver) {
      const pattern = String.raw`^(.+)(.+)(.+)\1\2\3$|${index}-${++joins}`;
      try {
        const socket = await subscribe(base, signClaims(claims), { table: "essays", filter: `body=match.${pattern}` });
        open.add(socket);
        socket.on("message", (data: Buffer) => data.includes('"phx_error"') && socket.terminate());
        await new Promise((resolve) => socket.once("close", resolve));
        open.delete(socket);
      } catch {
        // This subscriber was refused; others may not be.
      }
      await sleep(REJOIN_PAUSE_MS);
    }
  };
  for (let index = 0; index < sockets; index++) void attack(index);
  return {
    joins: () => joins,
    stop: () => {
      isOver = true;
      for (const socket of open) socket.terminate();
    },
  };
}
