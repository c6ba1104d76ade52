export { type GraphqlInterface, openGraphql } from "./open-graphql.ts";
export type { ReplaceStages } from "./operations/operation.ts";
export { GRAPHQL_PATH } from "./server/paths.ts";
