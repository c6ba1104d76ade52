import type { PgCodec, PgSelectSingleStep } from "@dataplan/pg";
import type { SQL } from "@dataplan/pg/pg-sql2";
import { type GrafastFieldConfig, lambda, type Step } from "grafast";
import type {} from "graphile-build-pg";
import { withSource } from "./field-sources.ts";
import {
  bindWithCodec,
  type InputObject,
  SEARCH_RESULT_CODECS,
  type SearchResult,
  searchResultOf,
} from "./row-conditions.ts";
import { isTable, outputTypeOf, type PgTable } from "./table.ts";
import { conditionFieldsOf, searchTypeOf } from "./WherePlugin.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      SearchResultsPlugin: true;
    }
  }
}

type Edge = Step & { node(): PgSelectSingleStep<PgTable> };

const ARGUMENT = "search";

const SEARCH_RESULTS: Readonly<Record<SearchResult, { readonly name: string; readonly description: string }>> = {
  rank: { name: "searchRank", description: "How well the row matches a search, with exactly one operator." },
  highlight: {
    name: "searchHighlight",
    description: "The searched texts with the words of the search, which has exactly one operator, in `<b>`.",
  },
};

export const SearchResultsPlugin: GraphileConfig.Plugin = {
  name: "SearchResultsPlugin",
  description: "Edges have the rank of their row in a full-text search, and its texts with the words marked",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        const { isConnectionEdgeType, pgCodec } = scope;
        if (!isConnectionEdgeType || !pgCodec?.attributes) return fields;
        const table = build.pgTableResource(pgCodec as PgTable["codec"]) as PgTable | null;
        if (!table || !isTable(table) || !searchTypeOf(build, table)) return fields;
        const results = Object.keys(SEARCH_RESULTS) as SearchResult[];
        const own = results.map((result) => {
          const { name } = SEARCH_RESULTS[result];
          return [name, fieldWithHooks({ fieldName: name }, () => resultField(build, table, result))];
        });
        return build.extend(fields, Object.fromEntries(own), `searches of ${table.name}`);
      },
    },
  },
};

function resultField(build: GraphileBuild.Build, table: PgTable, result: SearchResult): GrafastFieldConfig<Edge> {
  const { GraphQLNonNull } = build.graphql;
  const codec = SEARCH_RESULT_CODECS[result];
  const valueFor = (search: InputObject, row: SQL, bind = bindWithCodec) =>
    searchResultOf(result, conditionFieldsOf(table, build), search, row, bind);
  const field: GrafastFieldConfig<Edge> = {
    description: SEARCH_RESULTS[result].description,
    type: outputTypeOf(build, codec)!,
    args: { [ARGUMENT]: { type: new GraphQLNonNull(searchTypeOf(build, table)!) } },
    plan($edge, args) {
      const $row = $edge.node();
      const $rows = $row.getClassStep();
      const toValue = (search: unknown) => valueFor(search as InputObject, $rows.alias);
      // The rows' statement is of the layer above that of each row.
      const value = $rows.withLayerPlan(() => $rows.deferredSQL(lambda(args.getRaw(ARGUMENT), toValue)));
      return $row.select(value, codec as PgCodec);
    },
  };
  return withSource(field, { kind: "search result", argument: ARGUMENT, valueFor, codec });
}
