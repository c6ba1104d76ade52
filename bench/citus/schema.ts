import pg from "pg";

export const JOURNEY_SCHEMA = "citus_journeys";
export const LOGIN = { name: "citus_journeys_login", password: "journeys" } as const;
export const TENANTS = [1, 2, 3] as const;
/** Each tenant has this number of orders, and each order has two lines. */
export const ORDERS = 4;

const TABLES = `
  create table tenants (id int primary key, name text not null);
  create table products (id int primary key, name text not null);
  create table orders (
    tenant_id int not null, id int not null, note text, total int check (total >= 0), primary key (tenant_id, id)
  );
  create table order_lines (
    tenant_id int not null, id int not null, order_id int not null, product_id int not null, primary key (tenant_id, id)
  );`;

const DISTRIBUTION = `
  select create_reference_table('products');
  select create_distributed_table('tenants', 'id');
  select create_distributed_table('orders', 'tenant_id', colocate_with => 'tenants');
  select create_distributed_table('order_lines', 'tenant_id', colocate_with => 'orders');`;

// Citus refuses subqueries in policies, so the claim is read without (select …).
const tenantOf = (claims: string) => `(${claims} ->> 'tenant')::int`;
const CLAIMS = "current_setting('request.jwt.claims', true)::json";
/** The function is one of our migrations; each worker calls its own copy. */
const CLAIMS_BY_FUNCTION = "auth.jwt()";

const rulesFor = (tenant: string) => `
  alter table orders add foreign key (tenant_id) references tenants;
  alter table order_lines add foreign key (tenant_id, order_id) references orders;
  alter table order_lines add foreign key (product_id) references products;
  alter table tenants enable row level security;
  alter table orders enable row level security;
  alter table order_lines enable row level security;
  create policy own on tenants using (id = ${tenant});
  create policy own on orders using (tenant_id = ${tenant}) with check (tenant_id = ${tenant});
  create policy own on order_lines using (tenant_id = ${tenant}) with check (tenant_id = ${tenant});
  create function large_orders(minimum int) returns setof orders language sql stable
    as 'select * from ${JOURNEY_SCHEMA}.orders where total >= minimum';
  grant execute on function large_orders to authenticated;
  grant usage on schema ${JOURNEY_SCHEMA} to anon, authenticated;
  grant select on products, tenants to authenticated;
  grant select, insert, update, delete on orders, order_lines to authenticated;`;

const ROWS = `
  insert into products values (1, 'pen'), (2, 'ink');
  insert into tenants select n, 'tenant ' || n from generate_series(1, ${TENANTS.length}) n;
  insert into orders select t, n, 'order ' || n, 10 * n from generate_series(1, ${TENANTS.length}) t, generate_series(1, ${ORDERS}) n;
  insert into order_lines select t, n, (n + 1) / 2, 1 + n % 2
    from generate_series(1, ${TENANTS.length}) t, generate_series(1, ${2 * ORDERS}) n;`;

/** The workers of Citus are reached as the caller's role, which must be able to log in there. */
async function createRoles(client: pg.Client, isDistributed: boolean): Promise<void> {
  const { rows } = await client.query<{ rolname: string }>("select rolname from pg_roles");
  const known = new Set(rows.map(({ rolname }) => rolname));
  for (const role of ["anon", "authenticated"]) {
    if (!known.has(role)) await client.query(`create role ${role}`);
    if (isDistributed) await client.query(`alter role ${role} login`);
  }
  if (!known.has(LOGIN.name)) await client.query(`create role ${LOGIN.name} noinherit`);
  await client.query(`alter role ${LOGIN.name} login password '${LOGIN.password}'`);
  await client.query(`grant anon, authenticated to ${LOGIN.name}`);
}

/** Creates the tables of the journeys anew, distributed if the server has Citus. Resolves with true if it has. */
export async function createJourneyTables(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_extension where extname = 'citus'");
    const isDistributed = rowCount === 1;
    await createRoles(client, isDistributed);
    await client.query(`drop schema if exists ${JOURNEY_SCHEMA} cascade`);
    await client.query(`create schema ${JOURNEY_SCHEMA}`);
    await client.query(`set search_path = ${JOURNEY_SCHEMA}, public`);
    const migrated = await client.query("select where to_regprocedure('auth.jwt()') is not null");
    const rules = rulesFor(tenantOf(migrated.rowCount === 1 ? CLAIMS_BY_FUNCTION : CLAIMS));
    const parts = isDistributed ? [TABLES, DISTRIBUTION, rules, ROWS] : [TABLES, rules, ROWS];
    // Citus wants the statements that create a distributed table in transactions of their own.
    for (const statement of parts.join("").split(/;\s*(?:\n|$)/)) {
      if (statement.trim() !== "") await client.query(statement);
    }
    return isDistributed;
  } finally {
    await client.end();
  }
}
