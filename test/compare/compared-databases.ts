import { fixtureSql } from "../rest-gateway/table/differential/fixture.ts";
import { SECRET } from "../secret.ts";
import { CONTENT_ROWS, CONTENT_TABLES } from "./content.ts";

export type Settings = Readonly<Record<string, string>>;
export type DatabaseName = "tables" | "content";

/** A service whose rows are the same each time it is opened. */
export type ComparedService = {
  readonly url: string;
  /** Restores the numbers that sequences have drawn, which a rollback does not. */
  rewind(): Promise<void>;
  close(): Promise<void>;
};

type ComparedDatabase = {
  /** The migrations before `sql`. */
  readonly template: "empty" | "content";
  sql(major: number): Promise<string>;
  readonly rewind: string | null;
  readonly settings: Settings;
};

export const COMPARED_DATABASES: Readonly<Record<DatabaseName, ComparedDatabase>> = {
  tables: {
    template: "empty",
    sql: fixtureSql,
    rewind: "select private.rewind()",
    settings: {
      PGRST_DB_CONFIG: "false",
      PGRST_DB_SCHEMAS: "api,other",
      PGRST_DB_ANON_ROLE: "anon",
      PGRST_DB_EXTRA_SEARCH_PATH: "public,tools",
      PGRST_DB_AGGREGATES_ENABLED: "true",
      PGRST_DB_PLAN_ENABLED: "true",
      PGRST_DB_TX_END: "rollback-allow-override",
      PGRST_JWT_SECRET: SECRET,
      REST_REQUIRE_APIKEY: "false",
      REST_SAFE_WRITES: "false",
    },
  },
  content: {
    template: "content",
    sql: async () => `${CONTENT_TABLES}; ${CONTENT_ROWS}`,
    rewind: null,
    // Responses before the schema is built are different by chance.
    settings: { REST_REQUIRE_APIKEY: "false", GRAPHQL_PRELOAD: "on" },
  },
};
