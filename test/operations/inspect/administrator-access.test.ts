import { expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { administratorFindings } from "../../../operations/doctor/table-checks.ts";
import { lacksAdministratorPolicy } from "../../../operations/inspect/administrator-access.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";

const database = useDatabase({ template: "empty" });

const OWN = "create policy own on";
const TABLES: readonly (readonly [sql: string, lacks: boolean])[] = [
  ["alter table $ disable row level security", false],
  [`${OWN} $ using (owner = current_user)`, true],
  [`${OWN} $ using (owner = current_user); create policy admins on $ to admin using (true)`, false],
  [`${OWN} $ using (owner = current_user or current_setting('role') = 'admin')`, false],
  [`${OWN} $ using (true)`, false],
  // Restrictive policies show no row.
  [`${OWN} $ using (owner = current_user); create policy admins on $ as restrictive to admin using (true)`, true],
  // Administrators read every row, and change those of others only where a policy lets them.
  [`${OWN} $ using (owner = current_user); create policy admins on $ for select to admin using (true)`, false],
  [
    `${OWN} $ using (owner = current_user); create policy admins on $ for select to admin using (true);
     grant update on $ to admin`,
    true,
  ],
];

test("Studio and doctor agree in which tables administrators depend on policies for others", async () => {
  const statements = TABLES.map(([sql], index) => {
    const name = `public.t${index}`;
    return `create table ${name} (id int primary key, owner text);
      grant select on ${name} to authenticated, admin;
      alter table ${name} enable row level security; ${sql.replaceAll("$", name)}`;
  });
  await withClient(database.ownerUrl, async (client) => {
    await client.query(statements.join(";"));
    const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
    const { catalog } = await loadCatalog(client, options);
    const tables = TABLES.map((_, index) => catalog.schemas.get("public")!.tables.get(`t${index}`)!);
    expect(tables.map((table) => lacksAdministratorPolicy(catalog, table))).toEqual(TABLES.map(([, lacks]) => lacks));
    const [finding] = administratorFindings({ catalog, clients: ["authenticated"] } as never);
    const named = TABLES.map((_, index) => finding!.problem.includes(`t${index}`) === TABLES[index]![1]);
    expect(named).toEqual(TABLES.map(() => true));
  });
});
