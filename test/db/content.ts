import type pg from "pg";
import { type TestDatabase, useClient, useDatabase } from "../database.ts";
import { asCaller, type Caller, SEED } from "./callers.ts";

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
  const database = useDatabase({ sql: SEED });
  const owner = useClient(database.ownerUrl);
  const requests = useClient(database.url);
  return {
    database,
    owner,
    requests,
    as: (caller, statement, values = []) =>
      asCaller(requests, caller, async () => (await requests.query<Row>(statement, values)).rows),
  };
}
