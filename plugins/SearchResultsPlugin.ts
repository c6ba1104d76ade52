import type { SQL } from "@dataplan/pg/pg-sql2";
import type { GrafastFieldConfig, Step } from "grafast";
import { withSource } from "./field-sources.ts";
import { AddedTypes, freeTypeName } from "./name-claims.ts";
import { type InputObject, SEARCH_RESULT_CODECS, type SearchResult, searchResultOf } from "./row-conditions.ts";
import type { BindValue } from "./row-operators.ts";
import { outputTypeOf, type PgTable, tablesOf } from "./table.ts";
import { conditionFieldsOf, isSearchedTable, searchTypeOf } from "./WherePlugin.ts";

declare global {
  namespace GraphileBuild {
    interface ScopeObject {
      /** True for a connection, or its edge, whose rows have the results of a search beside them. */
      isOfSearchResults?: boolean;
    }
  }
}

type Hook = GraphileBuild.SchemaBuilderHooks["GraphQLObjectType_fields"][number];
type Fields = Parameters<Hook>[0];
type FieldsContext = Parameters<Hook>[2];

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
  description: "Rows with their rank in a full-text search, and with its texts in which the words are marked",
  schema: {
    hooks: {
      init: {
        // Types of the database keep their names.
        after: ["PgCodecs", "IndexedTablesPlugin", "FiltersPlugin", "WherePlugin", "OrderByPlugin", "AggregatesPlugin"],
        callback(_, build) {
          for (const table of tablesOf(build)) registerConnection(build, table);
          return _;
        },
      },
      GraphQLObjectType_fields: {
        // Fields of the database keep their names.
        after: ["PgAllRowsPlugin", "PgRowByUniquePlugin", "PgCustomTypeFieldPlugin", "FunctionPrecedencePlugin"],
        callback(fields, build, context) {
          if (context.scope.isRootQuery) return build.extend(fields, connectionsOf(fields, build, context), "searches");
          const { isOfSearchResults, isConnectionEdgeType } = context.scope;
          if (!isOfSearchResults || !isConnectionEdgeType) return fields;
          return build.extend(fields, resultsOf(build, context), "results of searches");
        },
      },
    },
  },
};

/** The connection types of tables with texts: separate types, so that the connections of all rows keep their fields. */
const connectionTypes = new AddedTypes<PgTable>();

function registerConnection(build: GraphileBuild.Build, table: PgTable): void {
  if (!isSearchedTable(table, build) || !build.behavior.pgResourceMatches(table, "query:resource:connection")) return;
  const { inflection } = build;
  const typeName = inflection.tableType(table.codec);
  const preferred = inflection.connectionType(`${typeName}SearchResult`);
  const connectionTypeName = connectionTypes.claimName(build, table, preferred);
  const edgeTypeName = freeTypeName(build, inflection.edgeType(`${typeName}SearchResult`));
  build.registerCursorConnection!({
    typeName,
    connectionTypeName,
    edgeTypeName,
    scope: { isPgConnectionRelated: true, pgCodec: table.codec, isOfSearchResults: true },
    nonNullNode: true,
  });
}

/** The fields of the query type. */
function connectionsOf(fields: Fields, build: GraphileBuild.Build, { fieldWithHooks }: FieldsContext): Fields {
  const { inflection } = build;
  const added: Fields = {};
  for (const [table, type] of connectionTypes.namesOf(build)) {
    let fieldName = inflection.camelCase(`${inflection.tableType(table.codec)}-search-results`);
    while (fieldName in fields || fieldName in added) fieldName += "_";
    const scope = { fieldName, isPgFieldConnection: true, pgFieldResource: table } as const;
    added[fieldName] = fieldWithHooks(scope, () => ({
      type: build.getOutputTypeByName(type),
      description: `Reads the rows of \`${inflection.allRowsConnection(table)}\`, whose edges have the rank and the highlight of a search.`,
    }));
  }
  return added;
}

/** The fields of an edge. */
function resultsOf(build: GraphileBuild.Build, { scope, fieldWithHooks }: FieldsContext): Fields {
  const table = build.pgTableResource(scope.pgCodec as PgTable["codec"]) as PgTable;
  const results = Object.keys(SEARCH_RESULTS) as SearchResult[];
  return Object.fromEntries(
    results.map((result) => {
      const { name } = SEARCH_RESULTS[result];
      return [name, fieldWithHooks({ fieldName: name }, () => resultField(build, table, result))];
    }),
  );
}

function resultField(build: GraphileBuild.Build, table: PgTable, result: SearchResult): GrafastFieldConfig<Step> {
  const { GraphQLNonNull } = build.graphql;
  const codec = SEARCH_RESULT_CODECS[result];
  const valueFor = (search: InputObject, row: SQL, bind: BindValue) =>
    searchResultOf(result, conditionFieldsOf(table, build), search, row, bind);
  const field: GrafastFieldConfig<Step> = {
    description: SEARCH_RESULTS[result].description,
    type: outputTypeOf(build, codec)!,
    args: { [ARGUMENT]: { type: new GraphQLNonNull(searchTypeOf(build, table)!) } },
  };
  return withSource(field, { kind: "search result", argument: ARGUMENT, valueFor, codec });
}
