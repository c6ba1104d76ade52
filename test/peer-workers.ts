import type { HandlePeerMessage, PeerTopic, PeerWorkers } from "../runtime/concurrency/peer-workers.ts";

/** The workers of one service, in this process. */
export type ConnectedWorkers = {
  /** Joins another one. */
  join(): PeerWorkers & { exit(): void };
};

export function connectWorkers(): ConnectedWorkers {
  type Worker = { readonly handlers: Map<PeerTopic, HandlePeerMessage>; readonly exits: ((worker: number) => void)[] };
  const workers = new Map<number, Worker>();
  let next = 1;
  return {
    join() {
      const number = next++;
      const worker: Worker = { handlers: new Map(), exits: [] };
      workers.set(number, worker);
      return {
        async publish(topic, content) {
          for (const [other, { handlers }] of workers) if (other !== number) handlers.get(topic)?.(content, number);
        },
        subscribe: (topic, handle) => void worker.handlers.set(topic, handle),
        onExit: (handle) => void worker.exits.push(handle),
        exit() {
          workers.delete(number);
          for (const { exits } of workers.values()) for (const handle of exits) handle(number);
        },
      };
    },
  };
}
