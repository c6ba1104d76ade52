export const GRAPHQL_PATH = "/graphql";
export const EXPLORER_PATH = "/graphiql";
