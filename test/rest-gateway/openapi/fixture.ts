import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import pg from "pg";
import type { Catalog } from "../../../catalog/catalog.ts";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import type { TableDocumentOptions } from "../../../rest-gateway/openapi/document/visible-schema.ts";
import { cloneDatabase, urlOf } from "../../database.ts";

export type Fixture = {
  readonly name: string;
  readonly catalog: Catalog;
  /** The copy's own name for a role of fixture.sql: `openapi_user` for `user`. */
  role(name: string): string;
  /** Schema `api` as a role sees it. */
  subject(role: string, differently?: Partial<TableDocumentOptions>): TableDocumentOptions;
  drop(): Promise<void>;
};

/** Makes a database with the objects of fixture.sql, roles included. */
export async function makeFixture(): Promise<Fixture> {
  const { name, ownerUrl, drop } = await cloneDatabase("empty");
  const prefix = `openapi_${randomBytes(4).toString("hex")}_`;
  const text = await readFile(new URL("fixture.sql", import.meta.url), "utf8");
  const options = { schemas: ["api", "other"], extraSearchPath: ["extra"], loginRole: `${prefix}login` };
  const catalog = await asOwner(ownerUrl, async (client) => {
    await client.query(text.replaceAll("openapi_", prefix));
    return (await loadCatalog(client, options)).catalog;
  });
  return {
    name,
    catalog,
    role: (role) => prefix + role,
    subject: (role, differently) => ({
      catalog,
      role: prefix + role,
      schema: "api",
      tables: null,
      mode: "follow-privileges",
      serverUrl: "/rest/v1",
      securityActive: false,
      requireApiKey: true,
      version: "1.2.3",
      ...differently,
    }),
    async drop() {
      await drop();
      await asOwner(urlOf("postgres", "postgres"), (client) =>
        client.query(["user", "anon", "stranger", "login"].map((role) => `drop role ${prefix}${role};`).join(" ")),
      );
    },
  };
}

async function asOwner<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
