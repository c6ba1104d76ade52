import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import pg from "pg";
import type { Catalog } from "../../catalog/catalog.ts";
import type { CatalogOptions } from "../../catalog/catalog-rows.ts";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import { cloneDatabase, urlOf } from "../database.ts";

/** A database with the objects of fixture.sql, roles included. */
export type Fixture = {
  readonly name: string;
  readonly ownerUrl: string;
  readonly options: CatalogOptions;
  readonly owner: pg.Client;
  /** The copy's own name for a role of fixture.sql: `catalog_user` for `user`. */
  role(name: string): string;
  load(previous?: Catalog): Promise<Catalog>;
  drop(): Promise<void>;
};

export async function makeFixture(): Promise<Fixture> {
  const { name, ownerUrl, drop } = await cloneDatabase("empty");
  const prefix = `catalog_${randomBytes(4).toString("hex")}_`;
  const owner = await connect(ownerUrl);
  const text = await readFile(new URL("fixture.sql", import.meta.url), "utf8");
  await owner.query(text.replaceAll("catalog_", prefix));
  const options = {
    schemas: ["api", "Odd Schema"],
    extraSearchPath: ["public", "extra"],
    loginRole: `${prefix}login`,
  };
  return {
    name,
    ownerUrl,
    options,
    owner,
    role: (role) => prefix + role,
    load: async (previous) => (await loadCatalog(owner, options, previous)).catalog,
    async drop() {
      await owner.end();
      await drop();
      await dropRoles(prefix);
    },
  };
}

export async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  // A test that ends a backend is no reason to end the run.
  client.on("error", () => {});
  await client.connect();
  return client;
}

export function tableOf(catalog: Catalog, name: string, schema = "api"): CatalogTable {
  const table = catalog.findTable({ schema, name });
  if (!table) throw new Error(`There is no ${schema}.${name}`);
  return table;
}

async function dropRoles(prefix: string): Promise<void> {
  const client = await connect(urlOf("postgres", "postgres"));
  const { rows } = await client.query<{ name: string }>(
    "select quote_ident(rolname) as name from pg_roles where starts_with(rolname, $1)",
    [prefix],
  );
  for (const { name } of rows) await client.query(`drop role ${name}`);
  await client.end();
}
