import type { Database } from "#postgres/database";
import type { ReplayRequest } from "./protocol/messages.ts";

type KeptMessage = { readonly id: string; readonly event: string; readonly payload: string };

/** Reads the newest messages of a private channel that SQL has sent, the oldest first, as many as fit the limit of bytes. */
export type ReadKeptMessages = (topic: string, request: ReplayRequest) => Promise<readonly KeptMessage[]>;

/** The limit of the payloads together, since SQL can send messages of any size. */
const MAX_REPLAYED_BYTES = 4 * 2 ** 20;

const KEPT_MESSAGES = `
  select id, event, payload from (
    select *, pg_catalog.sum(pg_catalog.octet_length(payload)) over (order by inserted_at desc, id) as bytes from (
      select id::pg_catalog.text, coalesce(event, '') as event, payload::pg_catalog.text as payload, inserted_at from realtime.messages
      where topic = $1 and private and extension = 'broadcast' and payload is not null
        and inserted_at > pg_catalog.to_timestamp($2 / 1000.0)
      order by inserted_at desc, messages.id limit $3
    ) as newest
  ) as measured
  where bytes <= ${MAX_REPLAYED_BYTES}
  order by inserted_at desc, id`;

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
