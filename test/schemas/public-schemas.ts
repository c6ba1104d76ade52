import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Logger, runMigrations } from "graphile-worker";
import pg from "pg";

export type PublicSchema = {
  readonly title: string;
  /** The name of the schema in Postgres. */
  readonly name: string;
  /** The role that the crawler asks as. */
  readonly role: string;
  /** Roles that are made for it, and that everything is granted to as well. */
  readonly ownRoles?: readonly string[];
  /** Loads it into an empty database as the owner. */
  load(ownerUrl: string): Promise<void>;
  /** Rows that no generator would think of, before those that are generated. */
  readonly rows?: string;
  /** Tables that no row is found for. */
  readonly empty?: readonly string[];
};

const SQL = join(import.meta.dirname, "../data/schemas");

const fromFile = (file: string) => async (ownerUrl: string) => {
  const client = new pg.Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    await client.query(await readFile(join(SQL, file), "utf8"));
  } finally {
    await client.end();
  }
};

export function schemaOf(file: string, more: Pick<PublicSchema, "title" | "role">): PublicSchema {
  return { name: "public", load: fromFile(file), ...more };
}

/** Schemas of others that may be redistributed: `test/data/schemas/README.md` says where each is from. */
export const PUBLIC_SCHEMAS = {
  backstage: { title: "Backstage's catalogue", name: "public", role: "authenticated", load: fromFile("backstage.sql") },
  dbos: { title: "DBOS", name: "dbos", role: "authenticated", load: fromFile("dbos.sql") },
  django: { title: "Django", name: "public", role: "authenticated", load: fromFile("django.sql") },
  graphileWorker: {
    title: "Graphile Worker",
    name: "graphile_worker",
    role: "service_role",
    load: (connectionString: string) => runMigrations({ connectionString, logger: new Logger(() => () => {}) }),
  },
  kea: { title: "Kea", name: "public", role: "authenticated", load: fromFile("kea.sql") },
  logto: {
    title: "Logto",
    name: "public",
    role: "service_role",
    load: fromFile("logto.sql"),
    // Two checks are functions of another table's row, and two demand a word in a column that a foreign key fills.
    rows: `
      insert into tenants (id, db_user) values ('one', 'logto_tenant_one'), ('two', 'logto_tenant_two');
      insert into applications (tenant_id, id, name, secret, type, oidc_client_metadata) values ('one', 'saml', 'saml', 's', 'SAML', '{}');
      insert into oidc_model_instances (tenant_id, model_name, id, payload, expires_at)
        select 'one', 'Grant', 'grant ' || number, '{}', now() from generate_series(1, 3) as number;`,
  },
  medusa: { title: "Medusa", name: "public", role: "authenticated", load: fromFile("medusa.sql") },
  optuna: { title: "Optuna", name: "public", role: "authenticated", load: fromFile("optuna.sql") },
  pgboss: {
    title: "pg-boss",
    name: "pgboss",
    role: "authenticated",
    load: fromFile("pgboss.sql"),
    rows: "insert into pgboss.queue (name) values ('mail'), ('plain'); insert into pgboss.job (name, data) values ('mail', '{}'), ('plain', null)",
  },
} satisfies Record<string, PublicSchema>;
