import pg from "pg";
import type { ServerOptions } from "#postgres/client";
import type { Lsn } from "#postgres/database";

/** The header of a frame with WAL: kind, start, end, time. */
export const FRAME_HEADER_BYTES = 25;
export const KEEPALIVE_BYTES = 18;
export const WAL_DATA = "w".charCodeAt(0);
export const KEEPALIVE = "k".charCodeAt(0);

export function makeReplicationClient(server: ServerOptions, applicationName: string): pg.Client {
  const client = new pg.Client({
    ...server,
    fallback_application_name: applicationName,
    replication: "database",
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  } as pg.ClientConfig);
  // A lost connection rejects the pending query; this event would otherwise end the process.
  return client.on("error", () => {});
}

/** https://www.postgresql.org/docs/current/protocol-replication.html: written, flushed and applied, our clock, whether an answer is wanted. */
export function standbyStatus(received: Lsn, flushed: Lsn, wanted: "answer" | null): Buffer {
  const message = Buffer.alloc(1 + 4 + 34);
  message.write("d");
  message.writeInt32BE(4 + 34, 1);
  message.write("r", 5);
  message.writeBigUInt64BE(received, 6);
  for (const at of [14, 22]) message.writeBigUInt64BE(flushed, at);
  message[38] = wanted ? 1 : 0;
  return message;
}
