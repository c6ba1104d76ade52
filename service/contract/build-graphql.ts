import { type Catalog, exposedSchemas } from "#catalog";
import { loginRoleOf, type PostgresUrls } from "#cluster";
import type { Config } from "#config";
import { type BuiltSchema, buildServableSchema, makePgService } from "#graphql/schema";
import { makePreset } from "#plugins";
import { openDatabase } from "#postgres/database";

/** Builds the GraphQL schema as the service does. */
export async function buildGraphQL(
  catalog: Catalog,
  { maxPageSize }: Pick<Config, "maxPageSize">,
  { requestUrl, ownerUrl }: Pick<PostgresUrls, "requestUrl" | "ownerUrl">,
  loginRole?: string,
): Promise<BuiltSchema> {
  const database = openDatabase({ url: requestUrl, ownerUrl, log: { info() {}, warn() {} } });
  try {
    const schemas = exposedSchemas(catalog).map(({ name }) => name);
    const pgService = makePgService({ database, schemas, loginRole: loginRole ?? (await loginRoleOf(requestUrl)) });
    return await buildServableSchema(makePreset({ pgService, maxPageSize }), new AbortController().signal);
  } finally {
    await database.close();
  }
}
