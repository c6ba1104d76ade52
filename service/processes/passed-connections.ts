import cluster, { type Worker } from "node:cluster";

/** The parts of Node's own messages between a primary and its workers that tell which process has a connection. */
type ConnectionMessage = { readonly cmd?: unknown; readonly act?: unknown; readonly seq?: unknown };
type Acknowledgement = { readonly ack?: unknown };
type PassedHandle = { close(): void };

export type PassedConnections = {
  /** Returns the number of connections that the worker has not accepted yet. */
  count(): number;
};

/**
 * A limit that a worker does not reach before it acknowledges its first connection: with more, a later Node acknowledges them in another
 * way. The connections are then no longer followed, which is what Node does without this module.
 */
const MAX_UNACKNOWLEDGED = 65_536;

const OWN_MESSAGE = "NODE_CLUSTER";

/**
 * Node forgets the connections that it has passed to a worker which exits before it has acknowledged them, so their
 * clients would wait until they give up. They are passed to another worker instead, as if this one had refused them; if
 * there is none, they are closed.
 *
 * Node documents no way to do so, so this reads its own messages between the processes. A message of another form is
 * passed on as it is. test/service/processes/passed-connections.test.ts fails if a Node changes them.
 */
export function rescueConnections({ process: child }: Worker): PassedConnections {
  const unacknowledged = new Map<unknown, PassedHandle>();
  const { send } = child;
  child.send = (message: ConnectionMessage, handle?: unknown, ...others: unknown[]) => {
    if (message.cmd === OWN_MESSAGE && message.act === "newconn" && isPassedHandle(handle)) {
      if (unacknowledged.size >= MAX_UNACKNOWLEDGED) unacknowledged.clear();
      unacknowledged.set(message.seq, handle);
    }
    return Reflect.apply(send, child, [message, handle, ...others]);
  };
  child.on("internalMessage", (message: Acknowledgement | null) => void unacknowledged.delete(message?.ack));
  // Node's own listeners run before: they remove a worker that is not connected from those that get connections.
  const rescue = () => {
    if (child.connected) return;
    const hasOthers = Object.values(cluster.workers ?? {}).some((worker) => worker!.isConnected());
    for (const [ack, handle] of unacknowledged) {
      if (hasOthers) child.emit("internalMessage", { cmd: OWN_MESSAGE, ack, accepted: false });
      else handle.close();
    }
    unacknowledged.clear();
  };
  child.once("exit", rescue);
  // This event is not emitted while a connection is being passed.
  child.once("disconnect", rescue);
  return { count: () => unacknowledged.size };
}

function isPassedHandle(handle: unknown): handle is PassedHandle {
  return typeof (handle as Partial<PassedHandle> | null | undefined)?.close === "function";
}
