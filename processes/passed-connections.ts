import cluster, { type Worker } from "node:cluster";

/** The parts of Node's own messages between a primary and its workers that say who has a connection. */
type ConnectionMessage = { readonly cmd?: unknown; readonly act?: unknown; readonly seq?: unknown };
type Acknowledgement = { readonly ack?: unknown };
type PassedHandle = { close(): void };

const OWN_MESSAGE = "NODE_CLUSTER";

/**
 * Node forgets the connections that it has passed to a worker which exits before it has acknowledged them, so their
 * clients would wait until they give up. They are passed to another worker instead, as if this one had refused them; if
 * there is none, they are closed.
 */
export function rescueConnections({ process: child }: Worker): void {
  const unacknowledged = new Map<unknown, PassedHandle>();
  const { send } = child;
  child.send = (message: ConnectionMessage, handle?: unknown, ...others: unknown[]) => {
    if (message.cmd === OWN_MESSAGE && message.act === "newconn")
      unacknowledged.set(message.seq, handle as PassedHandle);
    return Reflect.apply(send, child, [message, handle, ...others]);
  };
  child.on("internalMessage", ({ ack }: Acknowledgement) => void unacknowledged.delete(ack));
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
  // It is not emitted while a connection is being passed.
  child.once("disconnect", rescue);
}
