import type pg from "pg";
import { afterAll, beforeAll } from "vitest";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { asCaller, type Caller, connect, SEED } from "./callers.ts";

type Row = Record<string, unknown>;

export type Content = {
  readonly owner: pg.Client;
  readonly requests: pg.Client;
  readonly database: TestDatabase;
  /** The rows a statement gives that caller, undone afterwards. */
  as(caller: Caller, statement: string, values?: unknown[]): Promise<Row[]>;
};

/** The book with a few rows, for the tests of one file. */
export function useContent(): Content {
  const content = {
    as: (caller: Caller, statement: string, values: unknown[] = []) =>
      asCaller(content.requests, caller, async () => (await content.requests.query<Row>(statement, values)).rows),
  } as { -readonly [Key in keyof Content]: Content[Key] };

  beforeAll(async () => {
    content.database = await cloneDatabase("content");
    content.owner = await connect(content.database.ownerUrl);
    content.requests = await connect(content.database.url);
    await content.owner.query(SEED);
  });
  afterAll(async () => {
    await Promise.all([content.owner.end(), content.requests.end()]);
    await content.database.drop();
  });
  return content;
}
