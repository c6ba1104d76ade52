import type {} from "postgraphile";
import { isTable, sqlNameOf, type Table } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NameClashesPlugin: true;
    }
  }
}

export const NameClashesPlugin: GraphileConfig.Plugin = {
  name: "NameClashesPlugin",
  description: "Two tables that would be one type are named, and what to do about it",
  schema: {
    hooks: {
      // Not init, where core registers the types and would complain first, in words of its own.
      build(unfinished) {
        const build = unfinished as GraphileBuild.Build;
        const tables = Object.values(build.pgResources)
          .filter(isTable)
          .filter((table) => !build.pgExcludeDueToPartitioning(table));
        for (const [type, clashing] of Map.groupBy(tables, (table: Table) => build.inflection.tableType(table.codec))) {
          if (clashing.length > 1) throw new Error(clash(type, clashing.map(sqlNameOf)));
        }
        return unfinished;
      },
    },
  },
};

function clash(type: string, tables: readonly string[]): string {
  return `In GraphQL the rows of ${tables.join(" and of ")} would all be of type ${type}. Rename a table, or give it another name there: comment on table ${tables.at(-1)} is '@name …'`;
}
