import type {} from "postgraphile";
import type { PgSelectQueryBuilder, PgSelectStep } from "postgraphile/@dataplan/pg";
import type { connection, GrafastArgumentConfig, GrafastFieldConfigArgumentMap, Step } from "postgraphile/grafast";
import { type Filter, filtersOf } from "./filters.ts";
import { isTable, type Table } from "./table.ts";
import { visibleTo } from "./visibility.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      FiltersPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface Inflection {
      filterType(this: Inflection, table: Table): string;
    }
    interface ScopeInputObject {
      isTableFilter?: boolean;
    }
  }
}

/** Arguments of a connection that are no filters. */
const TAKEN: ReadonlySet<string> = new Set(["first", "last", "before", "after", "filter"]);

export const FiltersPlugin: GraphileConfig.Plugin = {
  name: "FiltersPlugin",
  description: "Connections are filtered by what has an index",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgClass, pgAttribute, attribute }) {
        const indexedBy = pgClass
          .getIndexes()
          .filter((index) => index.indpred === null && index.getKeys()[0] === pgAttribute)
          .map((index) => index.getIndexClass()?.getAccessMethod()?.amname ?? "");
        if (indexedBy.length > 0) attribute.extensions = { ...attribute.extensions, indexedBy };
      },
    },
  },
  inflection: {
    add: {
      filterType(_preset, table) {
        return this.inputType(`${this.tableType(table.codec)}Filter`);
      },
    },
  },
  schema: {
    hooks: {
      init(_, build) {
        for (const table of Object.values(build.pgResources).filter(isTable)) {
          if (!build.behavior.pgResourceMatches(table, "query:resource:connection")) continue;
          build.registerInputObjectType(
            build.inflection.filterType(table),
            { isTableFilter: true },
            () => ({
              description: `Which of the ${build.inflection._allRows(table)} to return: those that meet every condition given.`,
              fields: () => Object.fromEntries(filtersOf(table, build).map((filter) => [filter.name, fieldOf(filter)])),
            }),
            "FiltersPlugin",
          );
        }
        return _;
      },
      GraphQLObjectType_fields_field_args(args, build, { scope, Self }) {
        const { pgFieldResource: table, isPgFieldConnection, fieldName } = scope;
        if (!isPgFieldConnection || !table || !isTable(table)) return args;
        const filters = filtersOf(table, build);
        if (filters.length === 0) return args;
        const flat = filters.filter(({ name, isArgument }) => isArgument && !TAKEN.has(name));
        const added: GrafastFieldConfigArgumentMap = Object.fromEntries(
          flat.map((filter) => [filter.name, argumentOf(filter)]),
        );
        added.filter = { type: build.getInputTypeByName(build.inflection.filterType(table)), applyPlan: applyAll };
        return build.extend(args, added, `Filtering ${Self.name}.${fieldName}`);
      },
    },
  },
};

type Builder = PgSelectQueryBuilder;
type Connection = ReturnType<typeof connection>;
type Apply = NonNullable<GrafastArgumentConfig<Step, Connection>["applyPlan"]>;

function fieldOf({ type, description, apply, visibleTo: rule }: Filter) {
  const field = {
    type,
    description,
    apply: (builder: Builder, value: unknown) => {
      // A function is what every object of JavaScript has under the name of a column: it was left out.
      if (value != null && typeof value !== "function") apply(builder, value);
    },
  };
  return visibleTo(field, rule);
}

function argumentOf({ type, description, apply, visibleTo: rule }: Filter) {
  const applyPlan: Apply = (_$parent, $connection, argument) => {
    argument.apply(rowsOf($connection), (builder: Builder, value: unknown) => {
      if (value != null) apply(builder, value);
      return undefined;
    });
  };
  return visibleTo({ type, description, applyPlan }, rule);
}

const applyAll: Apply = (_$parent, $connection, argument) => argument.apply(rowsOf($connection));

function rowsOf($connection: Connection): PgSelectStep {
  return $connection.getSubplan() as Step as PgSelectStep;
}
