import { expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { distributionFindings } from "../../../operations/doctor/distribution-checks.ts";
import { type DoctorFacts, readServerFacts } from "../../../operations/doctor/facts.ts";
import { policyFindings } from "../../../operations/doctor/table-checks.ts";
import { CITUS, distribute, makeReference } from "../../citus-catalog.ts";
import { useClient, useDatabase } from "../../database.ts";

const CLAIM = "(current_setting('request.jwt.claims', true)::json ->> 'tenant')::int";

const database = useDatabase({
  template: "empty",
  sql: `
    ${CITUS}
    create table orders (tenant int, id int, open boolean, primary key (tenant, id));
    create table notes (id int primary key, tenant int);
    create table lines (tenant int, id int, primary key (tenant, id));
    create table events (tenant int, name text);
    create table products (id int primary key);
    alter table orders enable row level security;
    create policy own on orders to authenticated using (tenant = ${CLAIM});
    create policy open on orders to anon using (open);
    create policy every on orders to admin using (true);
    alter table lines enable row level security;
    create policy open on lines using (true);
    create policy own on lines as restrictive using (${CLAIM} = tenant);
    create policy own on products using (id = ${CLAIM});
    ${["orders", "notes", "lines", "events"].map((table) => distribute(table, "tenant")).join(" ")}
    ${makeReference("products")}
    set allow_system_table_mods = on;
    create function pg_catalog.run_command_on_workers(command text, parallel boolean default true)
      returns table (nodename text, nodeport int, success boolean, result text) language plpgsql as $$ begin
        nodeport := 5432; nodename := 'first'; success := true;
        execute command into result;
        return next;
        nodename := 'second'; success := false; result := 'connection refused';
        return next;
      end $$;`,
});
const owner = useClient(database.ownerUrl);

test("tables, policies and workers that make requests fail, or lead them to all shards, are found", async () => {
  const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
  const { catalog } = await loadCatalog(owner, options);
  const clients = ["anon", "authenticated"];
  const request = { catalog, clients, searched: [], claimsHook: null, login: "authenticator" };
  const facts = { catalog, clients, server: await readServerFacts(owner, request) } as unknown as DoctorFacts;

  expect(distributionFindings(facts).map(({ kind, problem }) => `${kind}: ${problem}`)).toEqual([
    'danger: Requests of "anon", "authenticated" fail on the worker first:5432 of Citus, where the role may not log in.',
    "danger: The worker second:5432 of Citus does not answer.",
    'slow: "public"."events" has no primary key: no request can address one of its rows by key.',
    'slow: The primary key of "public"."notes" does not contain its distribution column "tenant": a row by key is looked for in all shards.',
    'slow: The policy "open" on "public"."orders" does not compare the distribution column "tenant": requests without a filter on it are sent to all shards.',
  ]);
  // On other databases, these policies should have sub-selects, which Citus refuses.
  expect(policyFindings(facts)).toEqual([]);
});
