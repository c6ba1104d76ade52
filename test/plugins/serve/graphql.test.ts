import { expect, test } from "vitest";
import { serveGraphQL } from "../../graphql.ts";

const PATIENCE = `
  create function public.patience() returns text language sql stable return current_setting('statement_timeout');
  grant execute on function public.patience to anon`;

test.each([
  ["less time than others", "7", "30", "7s"],
  ["no more time than others", "7", "5", "5s"],
  ["what time it takes, where nothing limits it", "0", "0", "0"],
])("a statement of GraphQL has %s", async (_, own, others, patience) => {
  const settings = { GRAPHQL_STATEMENT_TIMEOUT_SECONDS: own, DB_STATEMENT_TIMEOUT_SECONDS: others };
  const graphql = await serveGraphQL({ template: "empty", settings, before: PATIENCE });
  expect((await graphql.ask("{ patience }")).data).toEqual({ patience });
  await graphql.stop();
});
