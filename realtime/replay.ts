import type { Database } from "#postgres/database";
import type { ReplayRequest } from "./protocol/messages.ts";

type KeptMessage = { readonly id: string; readonly event: string; readonly payload: string };

/** Reads the newest messages of a private channel that SQL has sent, the oldest first. */
export type ReadKeptMessages = (topic: string, request: ReplayRequest) => Promise<readonly KeptMessage[]>;

const KEPT_MESSAGES = `
  select id::pg_catalog.text, coalesce(event, '') as event, payload::pg_catalog.text as payload from realtime.messages
  where topic = $1 and private and extension = 'broadcast' and payload is not null
    and inserted_at > pg_catalog.to_timestamp($2 / 1000.0)
  order by inserted_at desc, id limit $3`;

/** Makes the reader, which runs as the owner: whether the caller may receive messages of the topic was checked when it joined. */
export function makeKeptMessageReader(asOwner: Database["asOwner"]): ReadKeptMessages {
  return (topic, { since, limit }) =>
    asOwner(async (client) => (await client.query<KeptMessage>(KEPT_MESSAGES, [topic, since, limit])).rows.reverse());
}

/** The payload of a `broadcast` message. */
export function encodeReplayed({ id, event, payload }: KeptMessage): string {
  const meta = JSON.stringify({ replayed: true, id });
  return `{"type":"broadcast","event":${JSON.stringify(event)},"payload":${payload},"meta":${meta}}`;
}
