import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { median } from "../measuring/median.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { CALLER } from "./content.ts";
import { startOurGraphQL } from "./servers.ts";
import { TOKEN } from "./works.ts";

export const SUBSCRIPTIONS = 1_000;
/** The number of first subscriptions, which also pay for the shared costs. */
const WARM_UP = 100;
const EVENTS = 5;
const SETTLE_MS = 2_000;

const SUBSCRIPTION = "subscription { onArticleCreated { id title author { name } } }";
const EVENT = `insert into articles (title, content, author_id) values ('An event', 'for all', ${CALLER})`;

export type Subscribed = {
  /** The memory of the server per subscription; null without /proc. */
  readonly kibibytesEach: number | null;
  /** The time from the insert to the last subscriber; the second value is that of the median subscriber. */
  readonly lastMilliseconds: number;
  readonly middleMilliseconds: number;
};

/** Measures waiting subscriptions, each on its own socket, and the delivery of an event. */
export async function measureSubscriptions(scratch: Scratch): Promise<Subscribed> {
  await using opened = new AsyncDisposableStack();
  const { base, pid } = opened.adopt(await startOurGraphQL(scratch), (server) => server.stop());
  const subscribers = opened.adopt(new Subscribers(base), (subscribers) => subscribers.close());
  await subscribers.add(WARM_UP);
  await deliver(scratch, subscribers);
  await sleep(SETTLE_MS);
  const before = await residentMebibytes(pid);
  await subscribers.add(SUBSCRIPTIONS);
  await sleep(SETTLE_MS);
  const after = await residentMebibytes(pid);

  const deliveries: number[][] = [];
  for (let event = 0; event < EVENTS; event++) deliveries.push(await deliver(scratch, subscribers));
  return {
    kibibytesEach: before === null || after === null ? null : (1024 * (after - before)) / SUBSCRIPTIONS,
    lastMilliseconds: median(deliveries.map((times) => Math.max(...times))),
    middleMilliseconds: median(deliveries.map(median)),
  };
}

/** Returns the delivery time of each subscriber. */
async function deliver(scratch: Scratch, subscribers: Subscribers): Promise<number[]> {
  const times = subscribers.times();
  const start = performance.now();
  await scratch.execute(EVENT);
  return (await times).map((time) => time - start);
}

/** Minimal clients of graphql-transport-ws. */
class Subscribers {
  readonly #base: string;
  readonly #sockets: WebSocket[] = [];

  constructor(base: URL) {
    this.#base = base.href.replace(/^http/, "ws");
  }

  async add(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const socket = new WebSocket(this.#base, "graphql-transport-ws", { perMessageDeflate: false });
      await once(socket, "open");
      socket.send(JSON.stringify({ type: "connection_init", payload: { Authorization: `Bearer ${TOKEN}` } }));
      await once(socket, "message");
      socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: SUBSCRIPTION } }));
      this.#sockets.push(socket);
    }
  }

  /** Resolves with the times at which the subscribers received the next event. */
  times(): Promise<number[]> {
    const received = this.#sockets.map(async (socket) => {
      const [message] = await once(socket, "message");
      const time = performance.now();
      const { type, payload } = JSON.parse(String(message));
      if (type !== "next" || payload.errors) throw new Error(`A subscriber was sent ${message}`);
      return time;
    });
    return Promise.all(received);
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#sockets.map(async (socket) => {
        socket.close();
        await once(socket, "close");
      }),
    );
  }
}
