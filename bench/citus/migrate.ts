import pg from "pg";
import { releaseHistories, runMigrations } from "#migrate";

/** True on a worker whose policies can call our functions, and on which callers may log in. */
const ON_A_NODE =
  "select auth.uid() is null and auth.jwt() is null and auth.is_admin() is not null and auth.role() is not null and (select bool_and(rolcanlogin) from pg_roles where rolname in ('anon', 'authenticated', 'admin', 'service_role'))";

/**
 * Applies the platform's migrations, twice, as `npm run migrate` does on an empty coordinator and after a node was added. Resolves with
 * the nodes on which the functions or roles are missing; with null if the server has no Citus.
 */
export async function migrateCoordinator(ownerUrl: string): Promise<string[] | null> {
  const histories = releaseHistories().filter(({ name }) => name === "platform");
  const inDatabase = (name: string) => ownerUrl.replace(/\/[^/?]*(?=\?|$)/, `/${name}`);
  const settings = {
    url: ownerUrl,
    shadowUrl: inDatabase("citus_journeys_shadow"),
    rootUrl: inDatabase("template1"),
    histories,
  };
  for (let time = 0; time < 2; time++) await runMigrations({ name: "migrate" }, settings);
  const client = new pg.Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    const distributed = await client.query("select from pg_extension where extname = 'citus'");
    if (distributed.rowCount === 0) return null;
    const { rows } = await client.query<{ node: string; result: string }>(
      "select nodename || ':' || nodeport as node, result from run_command_on_workers($1) where not success or result is distinct from 't'",
      [ON_A_NODE],
    );
    return rows.map(({ node, result }) => `${node}: ${result}`);
  } finally {
    await client.end();
  }
}
