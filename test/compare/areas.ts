import { AREAS } from "../rest-gateway/table/differential/cases.ts";
import type { DatabaseName, Settings } from "./compared-databases.ts";
import { conventionalRequests } from "./conventional-requests.ts";
import { graphqlRequests } from "./graphql-requests.ts";
import type { ComparedRequest } from "./send-request.ts";
import { tableRequests } from "./table-requests.ts";

export type ComparedArea = {
  readonly name: string;
  readonly database: DatabaseName;
  /** The settings that differ from those of the database. */
  readonly settings: Settings;
  /** The requests of generated areas are made from the descriptions that the service at this URL has of itself. */
  requests(url: string): Promise<readonly ComparedRequest[]>;
};

const TABLE_AREAS = AREAS.map(
  (area): ComparedArea => ({
    name: `table-${area.name.replaceAll(/\W+/g, "-")}`,
    database: "tables",
    settings: area.settings ?? {},
    requests: async () => tableRequests(area),
  }),
);

export const COMPARED_AREAS: readonly ComparedArea[] = [
  { name: "conventional", database: "content", settings: {}, requests: conventionalRequests },
  { name: "graphql", database: "content", settings: { GRAPHQL_PRELOAD: "on" }, requests: graphqlRequests },
  ...TABLE_AREAS,
];

/** The areas of tables that one service with the default settings can serve. */
export const PLAIN_TABLE_AREAS = TABLE_AREAS.filter(({ settings }) => Object.keys(settings).length === 0);
