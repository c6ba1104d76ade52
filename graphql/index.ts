export { type GraphqlInterface, openGraphql } from "./open-graphql.ts";
export { GRAPHQL_PATH } from "./server/paths.ts";
