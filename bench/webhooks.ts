// Benchmarks a backlog of webhooks, and 10,000 events a second: the rate of one gateway, its memory, and the cost of capture for writers.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type MeasuredServer, startProgram } from "./comparison/program.ts";
import { JWT_SECRET } from "./comparison/sign-claims.ts";
import { startContent } from "./graphql/content.ts";
import { freePort } from "./measuring/free-port.ts";
import { findInspector, type Heap, openHeap } from "./measuring/heap.ts";
import type { Bench } from "./measuring/kind.ts";
import { processorTimeOf } from "./measuring/processor-time.ts";
import { residentMebibytes } from "./measuring/resident-memory.ts";
import type { Scratch } from "./measuring/scratch.ts";
import { watchMemory } from "./measuring/watch-memory.ts";

const ROOT = join(import.meta.dirname, "..");
const KEYS = 20_000;
const BACKLOG = 200_000;
const EVENTS_PER_SECOND = 10_000;
const BATCHES_PER_SECOND = 20;
const BATCH = EVENTS_PER_SECOND / BATCHES_PER_SECOND;
const LOOK_MS = 100;

const SCHEMA = `
  create table public.webhook_orders (
    id int primary key, number int not null, status text not null default 'new', note text not null default repeat('x', 200)
  );
  grant select on public.webhook_orders to service_role;
  insert into public.webhook_orders (id, number) select id, 0 from generate_series(1, ${KEYS}) id;`;
const ADD_WEBHOOK = (url: string) => `
  insert into api.webhooks (name, table_name, events, url, role)
  values ('bench', 'public.webhook_orders', '{UPDATE}', '${url}', 'service_role')`;
const UPDATE_ALL = "update public.webhook_orders set number = number + 1";
const UPDATE_SOME = (first: number) => `${UPDATE_ALL} where id between ${first} and ${first + BATCH - 1}`;
const UPDATE_EACH = `do $$ begin for key in 1..${KEYS} loop ${UPDATE_ALL} where id = key; end loop; end $$`;

type Drained = {
  readonly events: number;
  readonly perSecond: number;
  /** The heap in use before and after, without garbage. */
  readonly heapBytes: readonly [before: number, after: number];
  readonly residentBefore: number | null;
  readonly residentMost: number;
  readonly residentAfter: number | null;
  readonly processorMicrosecondsPerEvent: number | null;
};

export const bench: Bench = async ({ seconds, print }) => {
  print("webhooks: one gateway, one receiver in another process; events are updates of rows with 20,000 keys");
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  await scratch.execute(SCHEMA);
  const receiver = await start("receiver", [join(import.meta.dirname, "webhooks/receiver.ts")], {});
  opened.adopt(receiver, () => receiver.stop());
  const capture = await measureCapture(scratch, receiver);
  print(
    `  capture, per row: one statement for all ${describeCost(capture.bulk)}; a statement each ${describeCost(capture.single)}`,
  );

  for (let events = 0; events < BACKLOG; events += KEYS) await scratch.execute(UPDATE_ALL);
  const inspectorPort = await freePort();
  const gateway = await start("gateway", [`--inspect=127.0.0.1:${inspectorPort}`, join(ROOT, "server.js")], {
    DATABASE_URL: scratch.url("authenticator"),
    OWNER_DATABASE_URL: scratch.url("postgres"),
    JWT_SECRET,
    LOG_LEVEL: "warn",
    WEB_CONCURRENCY: "1",
    WEBHOOK_NETWORK: "loopback",
  });
  opened.adopt(gateway, () => gateway.stop());
  const heap = opened.use(await openHeap(await findInspector(inspectorPort)));
  const backlog = await drain({ gateway, heap, receiver }, { produceEvents: async () => BACKLOG, before: 0 });
  print(`  backlog of ${BACKLOG}: ${describe(backlog)}`);
  const produced = await drain(
    { gateway, heap, receiver },
    {
      produceEvents: () => produce(scratch, 10 * seconds),
      before: BACKLOG,
    },
  );
  print(`  ${EVENTS_PER_SECOND}/s for ${10 * seconds} s: ${describe(produced)}`);
  const { repeated, outOfOrder } = await countsOf(receiver);
  print(`  repeated ${repeated}, out of order ${outOfOrder}`);
  return { capture, backlog, produced, repeated, outOfOrder, isMissed: outOfOrder > 0 };
};

function start(name: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<MeasuredServer> {
  return startProgram({
    name,
    command: process.execPath,
    args: [...args],
    env: (PORT) => ({ PORT, ...env }),
    dialect: "tables",
    prefix: "/",
  });
}

type Cost = { readonly without: number; readonly captured: number };

/** Measures the microseconds per row without and with a webhook. The webhook remains, with nothing to deliver. */
async function measureCapture(scratch: Scratch, receiver: MeasuredServer): Promise<{ bulk: Cost; single: Cost }> {
  const perRow = async (sql: string) => {
    const startedAt = performance.now();
    await scratch.execute(sql);
    return (1_000 * (performance.now() - startedAt)) / KEYS;
  };
  const [bulkWithout, singleWithout] = [await perRow(UPDATE_ALL), await perRow(UPDATE_EACH)];
  await scratch.execute(ADD_WEBHOOK(new URL("/hook", receiver.base).href));
  const [bulkCaptured, singleCaptured] = [await perRow(UPDATE_ALL), await perRow(UPDATE_EACH)];
  await scratch.execute("delete from content_service.webhook_deliveries; update public.webhook_orders set number = 0");
  await scratch.execute("delete from content_service.webhook_deliveries");
  await scratch.execute("vacuum analyze");
  return {
    bulk: { without: bulkWithout, captured: bulkCaptured },
    single: { without: singleWithout, captured: singleCaptured },
  };
}

/** Resolves when the receiver has got all events that were produced meanwhile. */
async function drain(
  {
    gateway,
    heap,
    receiver,
  }: { readonly gateway: MeasuredServer; readonly heap: Heap; readonly receiver: MeasuredServer },
  { produceEvents, before }: { readonly produceEvents: () => Promise<number>; readonly before: number },
): Promise<Drained> {
  const heapBefore = await heap.used();
  const [residentBefore, processorBefore] = [await residentMebibytes(gateway.pid), await processorTimeOf(gateway.pid)];
  const watch = watchMemory(gateway.pid);
  const startedAt = performance.now();
  const events = await produceEvents();
  while ((await countsOf(receiver)).requests < before + events) await sleep(LOOK_MS);
  const seconds = (performance.now() - startedAt) / 1_000;
  const processor = await processorTimeOf(gateway.pid);
  return {
    events,
    perSecond: events / seconds,
    residentBefore,
    heapBytes: [heapBefore, await heap.used()],
    residentMost: watch.stop(),
    residentAfter: await residentMebibytes(gateway.pid),
    processorMicrosecondsPerEvent:
      processor === null || processorBefore === null ? null : (processor - processorBefore) / events,
  };
}

/** Writes at a constant rate; returns the number of events. */
async function produce(scratch: Scratch, seconds: number): Promise<number> {
  const startedAt = performance.now();
  const batches = seconds * BATCHES_PER_SECOND;
  for (let batch = 0; batch < batches; batch++) {
    await scratch.execute(UPDATE_SOME(1 + ((batch * BATCH) % KEYS)));
    await sleep(Math.max(0, startedAt + (1_000 * (batch + 1)) / BATCHES_PER_SECOND - performance.now()));
  }
  return batches * BATCH;
}

type Counts = { readonly requests: number; readonly repeated: number; readonly outOfOrder: number };

async function countsOf({ base }: MeasuredServer): Promise<Counts> {
  return (await (await fetch(base)).json()) as Counts;
}

function describe(drained: Drained): string {
  const { perSecond, heapBytes, residentBefore, residentMost, residentAfter, processorMicrosecondsPerEvent } = drained;
  const resident = [residentBefore, residentMost, residentAfter].map((each) => each?.toFixed(0)).join("/");
  return `${perSecond.toFixed(0)} events/s, ${processorMicrosecondsPerEvent?.toFixed(0)} µs of processor time each, heap before/after ${heapBytes.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join("/")} MiB, resident before/most/after ${resident} MiB`;
}

function describeCost({ without, captured }: Cost): string {
  return `${without.toFixed(1)} -> ${captured.toFixed(1)} µs`;
}
