import type pg from "pg";
import { ask } from "./ask.ts";

/** Names come out qualified because nothing is on the search path. A migration that holds its tables for long makes an attempt fail. */
const SETTINGS = `
  select set_config('search_path', '', true), set_config('jit', 'off', true),
    set_config('lock_timeout', '10s', true), set_config('statement_timeout', '60s', true)`;

/** Whatever is read inside agrees with itself. */
export async function inSnapshot<Result>(client: pg.ClientBase, work: () => Promise<Result>): Promise<Result> {
  await ask(client, "begin isolation level repeatable read, read only");
  try {
    await ask(client, SETTINGS);
    const result = await work();
    await ask(client, "commit");
    return result;
  } catch (error) {
    await ask(client, "rollback", [], 5_000).catch(() => {});
    throw error;
  }
}
