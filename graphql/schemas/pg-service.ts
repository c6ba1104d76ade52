import type { PgClient, PgClientQuery, PgClientResult } from "@dataplan/pg";
import type { NodePostgresPgClient } from "@dataplan/pg/adaptors/pg";
import { type Database, ResponseBudget } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { toPgText } from "../compile/text-values.ts";

type PgServiceOptions = {
  readonly database: Database;
  readonly schemas: readonly string[];
  /** The schema shows what this login role can access; introspection as the owner would show more. */
  readonly loginRole: string;
};

/** Our `Database` as a PostGraphile service, without a pool of its own, through which a build reads the catalogue. */
export function makePgService({
  database,
  schemas,
  loginRole,
}: PgServiceOptions): GraphileConfig.PgServiceConfiguration {
  // Core's queries do not qualify the names of Postgres, which objects of users on the search path would shadow.
  const context: StatementContext = { role: loginRole, settings: [["search_path", ""]] };
  const client: PgClient = {
    async query<Row>({ text, values = [] }: PgClientQuery): Promise<PgClientResult<Row>> {
      // Unlimited: the introspection takes 10 kB per table.
      const budget = new ResponseBudget(Number.POSITIVE_INFINITY);
      const statement = { text, values: values.map(toPgText) };
      const result = await database.run(context, statement, { readOnly: true, fields: true, budget });
      const names = result.fields!.map(({ name }) => name);
      const toObject = (row: readonly unknown[]): unknown =>
        Object.fromEntries(names.map((name, index) => [name, row[index]]));
      return { rows: result.rows.map(toObject) as readonly Row[], rowCount: result.rowCount };
    },
    withTransaction: () => Promise.reject(new TypeError("A build reads single statements")),
  };
  return {
    name: "main",
    schemas: [...schemas],
    adaptor: {
      // The types require node-postgres's client, which has one more property that is never used.
      createWithPgClient: () => (_settings, work) => Promise.resolve(work(client as NodePostgresPgClient)),
      makePgService: () => {
        throw new TypeError("The service uses its own connections");
      },
    },
    pgSettingsKey: "pgSettings",
    withPgClientKey: "withPgClient",
  };
}
