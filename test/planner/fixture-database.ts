import { readFile } from "node:fs/promises";
import pg from "pg";
import type { Catalog } from "../../catalog/catalog.ts";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import type { Intent, ResponseOptions } from "../../planner/intent/intent.ts";
import { bindValues } from "../../planner/plan/bind-parameters.ts";
import type { Plan, PlanOptions } from "../../planner/plan/plan.ts";
import { makeRequestPlanner } from "../../planner/prepare.ts";
import { buildQuery, type ResponseRow, readResponseRow } from "../../planner/query/build-query.ts";
import type { StatementTemplate } from "../../planner/query/sql.ts";
import { cloneDatabase } from "../database.ts";

/** The fixture of the differential tests, with a plain client that asks as a role. */
export type FixtureDatabase = {
  readonly owner: pg.Client;
  catalog: Catalog;
  reload(): Promise<void>;
  plan(intent: Intent, options?: FixtureOptions): Plan;
  text(intent: Intent, options?: FixtureOptions): string;
  /** Returns the result of the statement, and undoes its changes. */
  run(intent: Intent, options?: FixtureOptions): Promise<ResponseRow>;
  /** The body of the answer, as it is read from JSON. */
  rows(intent: Intent, options?: FixtureOptions): Promise<unknown>;
  /** The rows of any query for the intent. */
  lines(query: StatementTemplate, intent: Intent, role?: string): Promise<(string | null)[][]>;
  drop(): Promise<void>;
};
export type FixtureOptions = Partial<ResponseOptions & PlanOptions>;

export const JSON_FORMAT = { kind: "media", type: "application/json" } as const;
const USUAL: ResponseOptions & PlanOptions = {
  formats: [JSON_FORMAT],
  includesBody: true,
  maxAffected: null,
  role: "anon",
  aggregates: true,
  maxRows: null,
  safeWrites: true,
  legacyTargetNames: true,
  explainEnabled: true,
};

export const SCHEMAS = { schemas: ["api", "other"], extraSearchPath: ["tools"] };
const OPTIONS = { ...SCHEMAS, loginRole: "authenticator" };

export function planOver(catalog: Catalog, intent: Intent, options: FixtureOptions = {}): Plan {
  const all = { ...USUAL, ...options };
  return makeRequestPlanner(all)(intent, all, catalog, all.role).plan;
}

export async function openFixture(more = ""): Promise<FixtureDatabase> {
  const database = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const tables = new URL("../rest-gateway/table/differential/fixture.sql", import.meta.url);
  await owner.query((await readFile(tables, "utf8")) + more);
  const client = new pg.Client({
    connectionString: database.url,
    types: { getTypeParser: () => (text: string) => text },
  });
  await client.connect();

  const fixture: FixtureDatabase = {
    owner,
    catalog: (await loadCatalog(owner, OPTIONS)).catalog,
    async reload() {
      fixture.catalog = (await loadCatalog(owner, OPTIONS)).catalog;
    },
    plan: (intent, options) => planOver(fixture.catalog, intent, options),
    text: (intent, options) => buildQuery(fixture.plan(intent, options)).text,
    async run(intent, options = {}) {
      const plan = fixture.plan(intent, options);
      const [row] = await fixture.lines(buildQuery(plan), intent, options.role);
      return readResponseRow(row!, plan);
    },
    rows: async (intent, options) => JSON.parse((await fixture.run(intent, options)).body!),
    async lines({ text, parameters: slots }, intent, role = "anon") {
      await client.query("begin");
      try {
        await client.query("select set_config('role', $1, true), set_config('search_path', $2, true)", [
          role,
          "api, tools",
        ]);
        // This client would send a Buffer in binary, and its content is text.
        const values = bindValues(slots, intent).map((value) =>
          Buffer.isBuffer(value) ? value.toString("utf8") : value,
        );
        const { rows } = await client.query({ text, values, rowMode: "array" });
        return rows;
      } finally {
        await client.query("rollback");
      }
    },
    async drop() {
      await client.end();
      await owner.end();
      await database.drop();
    },
  };
  return fixture;
}
