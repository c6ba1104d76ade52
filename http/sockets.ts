export { type AcceptedSocket, rejectUpgrade, SequentialReader, SocketHost, type SocketSession } from "./socket-host.ts";
export { SocketMemory } from "./socket-memory.ts";
