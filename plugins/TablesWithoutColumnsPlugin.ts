import { gatherConfig } from "graphile-build";
import { entityPermissions, type Introspection, type PgClass } from "graphile-build-pg/pg-introspection";
import { pgServiceOf } from "./gather-query.ts";
import { type OmittedObject, quoteSqlName } from "./omitted-objects.ts";

declare global {
  namespace GraphileConfig {
    interface GatherHelpers {
      tablesWithoutColumns: Record<string, never>;
    }
  }
  namespace GraphileBuild {
    interface BuildInput {
      /** Tables that clients may use and that have no columns. */
      omittedTables?: readonly OmittedObject[];
    }
  }
}

type TablesWithoutColumnsState = { readonly omitted: OmittedObject[] };

export const TablesWithoutColumnsPlugin: GraphileConfig.Plugin = {
  name: "TablesWithoutColumnsPlugin",
  description: "Lists the tables without columns, for which GraphQL has no type",
  gather: gatherConfig({
    namespace: "tablesWithoutColumns",
    helpers: {},
    initialState: (): TablesWithoutColumnsState => ({ omitted: [] }),
    hooks: {
      pgIntrospection_introspection({ state, resolvedPreset }, { introspection, serviceName }) {
        const { schemas = ["public"] } = pgServiceOf(resolvedPreset, serviceName);
        const found = introspection.classes.filter((table) => isUsableWithoutColumns(table, introspection, schemas));
        state.omitted.push(...found.map(toOmittedTable));
      },
    },
    async main(output, { state }) {
      output.omittedTables = state.omitted;
    },
  }),
};

function isUsableWithoutColumns(table: PgClass, introspection: Introspection, schemas: readonly string[]): boolean {
  if (!/[rvmfp]/.test(table.relkind) || table.relispartition) return false;
  if (!schemas.includes(table.getNamespace()?.nspname ?? "")) return false;
  if (table.getAttributes().some(({ attnum, attisdropped }) => attnum > 0 && !attisdropped)) return false;
  const caller = introspection.getCurrentUser()!;
  const { select, insert, delete: remove } = entityPermissions(introspection, table, caller, true);
  return Boolean(select || insert || remove);
}

function toOmittedTable(table: PgClass): OmittedObject {
  const schema = table.getNamespace()!.nspname;
  const name = quoteSqlName(schema, table.relname);
  return {
    object: `table ${name}`,
    reason: "it has no columns, and a type of GraphQL has at least one field",
    fix: `-- Add a column to ${name}, or revoke the privileges on it.`,
    isBuildFault: true,
    holder: { kind: "table", schema, name: table.relname },
  };
}
