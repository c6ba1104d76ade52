/** The other worker processes of this service, with which a worker shares what is not in Postgres. */
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
  /** Counted requests of callers, where Postgres cannot add them up. */
  | "requests"
  /** Broadcasts and presences, where the WAL cannot be read. */
  | "realtime"
  /** The WAL positions of writes, which replicas must have replayed. */
  | "writes"
  /** Answers of the clients of agents, which have come to another worker than the one that asks. */
  | "agents";

/** For a service of one process. */
export const NO_PEERS: PeerWorkers = { publish: async () => {}, subscribe: () => {}, onExit: () => {} };
