import pg from "pg";
import { cloneDatabase } from "../database.ts";
import { AREAS } from "../rest-gateway/table/differential/cases.ts";
import { openFixture } from "../rest-gateway/table/differential/fixture.ts";
import { SECRET } from "../secret.ts";
import { serve } from "../serve.ts";
import { CONTENT_ROWS, CONTENT_TABLES } from "./content.ts";
import { conventionalRequests } from "./conventional-requests.ts";
import type { RecordedRequest } from "./exchange.ts";
import { graphqlRequests } from "./graphql-requests.ts";
import { tableRequests } from "./table-requests.ts";

/** A service whose rows are the same each time it is opened. */
export type RecordedService = {
  readonly url: string;
  /** Puts back what a rollback does not: the numbers that sequences have drawn. */
  readonly rewind: () => Promise<void>;
  close(): Promise<void>;
};

type Settings = Readonly<Record<string, string>>;
/** Changes the database before the service starts. */
type Prepare = (owner: pg.ClientBase) => Promise<void>;

export type RecordedArea = {
  readonly name: string;
  /** Whether its requests are for tables and the default settings: one service serves all such areas. */
  readonly isPlainTables: boolean;
  open(settings?: Settings, prepare?: Prepare): Promise<RecordedService>;
  /** What is to be recorded; a replay sends what was recorded instead. */
  requests(service: RecordedService): Promise<readonly RecordedRequest[]>;
};

const FIXTURE_SETTINGS = {
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
};

export async function openTables(settings: Settings = {}, prepare: Prepare = async () => {}): Promise<RecordedService> {
  const fixture = await openFixture();
  const owner = new pg.Client({ connectionString: fixture.ownerUrl });
  await owner.connect();
  await prepare(owner);
  const service = await serve(fixture, { ...FIXTURE_SETTINGS, ...settings });
  return {
    url: service.url,
    rewind: async () => void (await owner.query("select private.rewind()")),
    close: async () => {
      await service.stop();
      await owner.end();
      await fixture.drop();
    },
  };
}

export async function openContent(
  settings: Settings = {},
  prepare: Prepare = async () => {},
): Promise<RecordedService> {
  const database = await cloneDatabase();
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(CONTENT_TABLES);
  await owner.query(CONTENT_ROWS);
  await prepare(owner);
  await owner.end();
  const service = await serve(database, { REST_REQUIRE_APIKEY: "false", GRAPHQL_PRELOAD: "on", ...settings });
  return {
    url: service.url,
    rewind: async () => {},
    close: async () => {
      await service.stop();
      await database.drop();
    },
  };
}

export const RECORDED_AREAS: readonly RecordedArea[] = [
  ...AREAS.map((area) => ({
    name: `table-${area.name.replaceAll(/\W+/g, "-")}`,
    isPlainTables: area.settings === undefined,
    open: (settings?: Settings, prepare?: Prepare) => openTables({ ...area.settings, ...settings }, prepare),
    requests: async () => tableRequests(area),
  })),
  {
    name: "conventional",
    isPlainTables: false,
    open: openContent,
    requests: ({ url }) => conventionalRequests(url),
  },
  { name: "graphql", isPlainTables: false, open: openContent, requests: ({ url }) => graphqlRequests(url) },
];
