import fc from "fast-check";
import type pg from "pg";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { serve } from "../../serve.ts";
import { accessRules, type Caller, COLUMNS, type Returning, rowsSql, sqlOf, type TableName } from "./access-rules.ts";

/** A service with pairs of tables, each with rules of its own, by their numbers. */
export type RandomTables = {
  readonly owner: pg.Client;
  readonly service: Service;
  /** Runs the work in a transaction as the caller, and undoes it. */
  asCaller<T>(caller: Caller, work: (client: pg.Client) => Promise<T>): Promise<T>;
  /** The columns that the role may use. */
  columnsOf(caller: Caller, number: number, verb: "select" | "insert" | "update"): Promise<Returning>;
  close(): Promise<void>;
};

type Options = {
  readonly pairs: number;
  readonly seed: number;
  readonly template?: "content" | "empty";
  readonly settings?: NodeJS.ProcessEnv;
};

export async function openRandomTables({ pairs, seed, template = "empty", settings }: Options): Promise<RandomTables> {
  const opened = new AsyncDisposableStack();
  const database = await cloneDatabase(template);
  opened.defer(() => database.drop());
  const owner = await connect(database.ownerUrl);
  opened.defer(() => owner.end());
  const other = await connect(database.ownerUrl);
  opened.defer(() => other.end());
  await owner.query(`create schema private_defaults;
    grant usage on schema public, private_defaults to anon, authenticated, admin, service_role`);
  for (const [number, rules] of fc.sample(accessRules, { numRuns: pairs, seed }).entries()) {
    await owner.query(sqlOf(rules, number));
    await owner.query(rowsSql(number));
  }
  const service = await serve(database, settings);
  opened.defer(() => service.stop());

  const columnsOf = async (role: string, table: TableName, number: number, verb: string) => {
    const columns = table === "team" ? COLUMNS : [...COLUMNS, "team_id"];
    const { rows } = await owner.query<{ name: string }>(
      "select name from unnest($1::text[]) as name where has_column_privilege($2, $3, name, $4)",
      [columns, role, `public.${table}_${number}`, verb],
    );
    return rows.map(({ name }) => name);
  };
  return {
    owner,
    service,
    async asCaller(caller, work) {
      await other.query("begin");
      try {
        await other.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
          caller.role,
          JSON.stringify(caller),
        ]);
        return await work(other);
      } finally {
        await other.query("rollback");
      }
    },
    columnsOf: async ({ role }, number, verb) => ({
      team: await columnsOf(role, "team", number, verb),
      thing: await columnsOf(role, "thing", number, verb),
    }),
    close: () => opened.disposeAsync(),
  };
}
