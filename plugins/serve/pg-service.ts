import type { WithPgClient } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import { Budget } from "../../engine/database/budget.ts";
import type { Database } from "../../engine/database/database.ts";
import { makeWithPgClient } from "./pg-client.ts";

export type PgServiceOptions = {
  readonly database: Database;
  readonly schemas: readonly string[];
  /** The schema shows what this login can become; introspecting as the owner would show what no request may do. */
  readonly loginRole: string;
};

/** The database as PostGraphile is told of it: its SQL goes through the engine, in no pool of its own. */
export function makePgService({
  database,
  schemas,
  loginRole,
}: PgServiceOptions): GraphileConfig.PgServiceConfiguration {
  // The catalogue is as large as it is: 10 kB for each table.
  const budgetOf = () => new Budget(Number.POSITIVE_INFINITY);
  const introspect = makeWithPgClient(database, { role: loginRole, settings: [] }, { readOnly: true, budgetOf });
  return {
    name: "main",
    schemas: [...schemas],
    adaptor: {
      // The types know node-postgres's adaptor alone, whose clients have one property more that nobody reads.
      createWithPgClient: () => introspect as WithPgClient<NodePostgresPgClient>,
      makePgService: () => {
        throw new TypeError("The service is made of the engine's database");
      },
    },
    pgSettingsKey: "pgSettings",
    withPgClientKey: "withPgClient",
  };
}
