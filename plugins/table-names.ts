import type { GraphQLSchema } from "postgraphile/graphql";
import { isTable } from "./table.ts";

/** What a table or view is called in GraphQL. */
export type TableNames = {
  readonly schema: string;
  readonly table: string;
  readonly type: string;
  /** Of the fields that give its rows, those that the schema has. */
  readonly fields: readonly string[];
};

export function tableNames({ pgResources, inflection }: GraphileBuild.Build, schema: GraphQLSchema): TableNames[] {
  const queries = schema.getQueryType()?.getFields() ?? {};
  return Object.values(pgResources)
    .filter(isTable)
    .flatMap((resource) => {
      const { pg } = resource.extensions ?? {};
      const type = inflection.tableType(resource.codec);
      if (!pg || !schema.getType(type)) return [];
      const thing = inflection._singularizedResourceName(resource);
      const fields = [inflection.allRowsOf(thing), inflection.camelCase(thing)].filter((name) => name in queries);
      return [{ schema: pg.schemaName, table: pg.name, type, fields }];
    });
}
