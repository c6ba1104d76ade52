/** The other worker processes of this service, with which a worker shares state that is not in Postgres. */
export type PeerWorkers = {
  /** Resolves when the others have handled the message; those that hang are not waited for. */
  publish(topic: PeerTopic, content: unknown): Promise<void>;
  /** Handles the messages of the others to the topic; `sender` is the number of the worker. */
  subscribe(topic: PeerTopic, handle: HandlePeerMessage): void;
  /** Calls when another worker has exited. */
  onExit(handle: (worker: number) => void): void;
};

export type HandlePeerMessage = (content: unknown, sender: number) => void;

export type PeerTopic =
  /** The number of open WebSockets. */
  | "sockets"
  /** Counted requests of callers, if Postgres cannot add them up. */
  | "requests"
  /** Broadcasts and presences, if the WAL cannot be read. */
  | "realtime"
  /** The WAL positions of writes, which replicas must have replayed. */
  | "writes"
  /** Responses of agents' clients that another worker has received than the one that asked. */
  | "agents";

/** The peers of a service with one process: there are none. */
export const NO_PEERS: PeerWorkers = { publish: async () => {}, subscribe: () => {}, onExit: () => {} };
