import type { AsOwner } from "../database/as-owner.ts";

type Emitted = { readonly prefix: string; readonly content: string };
type Batch = { readonly messages: Emitted[]; readonly committed: Promise<void> };

/** In one statement at most, so that a commit, which waits for the disk, carries what came during the one before. */
const MOST_MESSAGES = 1_000;

/** Writes messages into the log, in the order in which they were given. */
export function makeEmitter(asOwner: AsOwner): (prefix: string, content: Uint8Array) => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Batch | null = null;

  const begin = (): Batch => {
    const messages: Emitted[] = [];
    const batch = {
      messages,
      committed: last.then(() => {
        if (next === batch) next = null;
        return emit(asOwner, messages);
      }),
    };
    last = batch.committed.catch(() => {});
    return batch;
  };

  return (prefix, content) => {
    if (!next || next.messages.length >= MOST_MESSAGES) next = begin();
    next.messages.push({ prefix, content: Buffer.from(content).toString("base64") });
    return next.committed;
  };
}

/** Transactional: others are not flushed before something else is, and are read only then. */
async function emit(asOwner: AsOwner, messages: readonly Emitted[]): Promise<void> {
  await asOwner((client) =>
    client.query(
      `select pg_logical_emit_message(true, prefix, decode(content, 'base64'))
       from unnest($1::text[], $2::text[]) with ordinality as message (prefix, content, number) order by number`,
      [messages.map(({ prefix }) => prefix), messages.map(({ content }) => content)],
    ),
  );
}
