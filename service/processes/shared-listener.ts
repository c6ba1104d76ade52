import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:net";
import { untilNoneAccepted } from "#http/serving";

/** Node's listening socket, as far as it is used here. */
type ListeningHandle = { onconnection(...parts: unknown[]): unknown; close(): void };
type ServerWithHandle = Server & { readonly _handle: ListeningHandle | null };

const LISTENING = "tracing:net.server.listen:asyncEnd";

type SharedListener = {
  /** Closes the socket when all connections that wait in it have been accepted. */
  close(): Promise<void>;
};

/**
 * Follows the socket at which the primary accepts connections for its workers. Node closes it when the last worker has closed its
 * server: connections that come meanwhile have no worker, and are reset. If it is closed before, all of them are passed to a worker.
 *
 * Node documents no way to do so. This takes the handle away from a server whose socket is for the workers;
 * test/service/processes/drain.test.ts fails if a Node changes this.
 */
export function followSharedListener(): SharedListener {
  const opened: { readonly server: ServerWithHandle; readonly handle: ListeningHandle }[] = [];
  const onListening = (message: unknown) => {
    const { server } = message as { readonly server: ServerWithHandle };
    if (server._handle) opened.push({ server, handle: server._handle });
  };
  subscribe(LISTENING, onListening);
  return {
    async close() {
      unsubscribe(LISTENING, onListening);
      const shared = opened.filter(({ server }) => server._handle === null).map(({ handle }) => handle);
      await Promise.all(shared.map(closeAcceptingAll));
    },
  };
}

async function closeAcceptingAll(handle: ListeningHandle): Promise<void> {
  let accepted = 0;
  const { onconnection } = handle;
  handle.onconnection = (...parts) => {
    accepted++;
    return Reflect.apply(onconnection, handle, parts);
  };
  await untilNoneAccepted(() => accepted);
  handle.close();
}
