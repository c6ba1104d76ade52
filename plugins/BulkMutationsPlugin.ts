import type { GrafastFieldConfig, GrafastInputFieldConfig, Step } from "grafast";
import {
  type GraphQLInputType,
  GraphQLList,
  GraphQLNonNull,
  type GraphQLSchema,
  getNullableType,
} from "grafast/graphql";
import { ApiError, memoizePerObject } from "#runtime";
import { withSource } from "./field-sources.ts";
import { AddedTypes, withUniqueNames } from "./name-claims.ts";
import { NESTED_TYPE_EXTENSION, type RowInput, readRowInput } from "./nested-inputs.ts";
import type { RowsWrite } from "./planned-write.ts";
import { columnInputField, functionMutationNames, mutationsOfTable } from "./TableMutationsPlugin.ts";
import { keyOf, outputTypeOf, type PgTable, sqlNameOf, tablesOf } from "./table.ts";
import { allRules, maySelectKey, mayUse, type VisibilityRule, withVisibility } from "./VisibilityPlugin.ts";
import { visibleColumnsOf } from "./WherePlugin.ts";

declare global {
  namespace DataplanPg {
    interface PgResourceUniqueExtensions {
      isDeferrable?: true;
    }
  }
}

type BulkVerb = "update" | "upsert";

type BulkMutation = {
  readonly verb: BulkVerb;
  readonly table: PgTable;
  readonly name: string;
  readonly key: readonly string[];
  /** The columns that its input writes. */
  readonly columns: readonly string[];
};

const RESOLUTIONS = {
  UPDATE: { resolution: "merge", description: "The existing row gets the values of the input." },
  IGNORE: { resolution: "ignore", description: "The existing row keeps its values and is not returned." },
} as const;

const RESOLUTION_TYPE = "ConflictResolution";
const DESCRIPTIONS: Readonly<Record<BulkVerb, string>> = {
  update: "Updates rows by their keys, all or none. Rows that do not exist, or that you may not change, are skipped.",
  upsert:
    "Adds rows, or updates those that exist, all or none. Fields that are not given have their defaults in new rows, and keep their values in existing ones.",
};

export const BulkMutationsPlugin: GraphileConfig.Plugin = {
  name: "BulkMutationsPlugin",
  description: "updateThings(input) and upsertThings(input, onConflict), unless functions have these names",
  gather: {
    hooks: {
      pgTables_unique(_info, { pgConstraint, unique }) {
        if (pgConstraint.condeferrable) unique.extensions = { ...unique.extensions, isDeferrable: true };
      },
    },
  },
  schema: {
    hooks: {
      init: {
        // Other types keep their names.
        after: ["PgCodecs", "IndexedTablesPlugin", "FiltersPlugin", "TableMutationsPlugin", "NestedInsertPlugin"],
        callback(_, build) {
          const mutations = bulkMutationsOf(build);
          if (mutations.some(({ verb }) => verb === "upsert")) registerResolutionType(build);
          for (const mutation of mutations) registerTypes(build, mutation);
          return _;
        },
      },
      GraphQLObjectType_fields: {
        after: ["TableMutationsPlugin", "FunctionMutationsPlugin"],
        callback(fields, build, { scope, fieldWithHooks }) {
          if (!scope.isRootMutation) return fields;
          return bulkMutationsOf(build).reduce((all, mutation) => {
            const { name, table } = mutation;
            const field = fieldWithHooks({ fieldName: name, pgFieldResource: table }, () =>
              withVisibility(bulkField(build, mutation), visibilityOf(mutation)),
            );
            return build.extend(all, { [name]: field }, `the table ${sqlNameOf(table)}`);
          }, fields);
        },
      },
    },
  },
};

const bulkMutationsOf = memoizePerObject((build: GraphileBuild.Build): readonly BulkMutation[] => {
  const tables = tablesOf(build);
  const single = tables.flatMap((table) => mutationsOfTable(table, build).map(({ name }) => name));
  const taken = new Set([...functionMutationNames(build), ...single]);
  return tables.flatMap((table) => bulkMutationsOfTable(build, table)).filter(({ name }) => !taken.has(name));
});

function bulkMutationsOfTable(build: GraphileBuild.Build, table: PgTable): BulkMutation[] {
  const { inflection } = build;
  const key = keyOf(table);
  // Sign-ups are counted one by one.
  if (!key || table.extensions?.tags?.signUp) return [];
  const ofVerb = (verb: "create" | "update") => mutationsOfTable(table, build).find((each) => each.verb === verb);
  const [create, update] = [ofVerb("create"), ofVerb("update")];
  if (!update) return [];
  const mutationOf = (verb: BulkVerb, columns: readonly string[]): BulkMutation[] => {
    const name = inflection.camelCase(`${verb}-${inflection._allRows(table)}`);
    return columns.length === 0 ? [] : [{ verb, table, name, key, columns }];
  };
  const changed = update.columns.filter((column) => !key.includes(column));
  const added = hasArbiter(table, key) ? (create?.columns ?? []) : [];
  return [...mutationOf("update", changed), ...mutationOf("upsert", added)];
}

/** The types by the names that they have unless those are taken. */
const inputTypes = new AddedTypes<string>();

function inputTypeName({ inflection }: GraphileBuild.Build, { name }: BulkMutation): string {
  return inflection.inputType(inflection.upperCamelCase(name));
}

function keyTypeName({ inflection }: GraphileBuild.Build, { table }: BulkMutation): string {
  return `${inflection.tableType(table.codec)}UniqueKey`;
}

function registerResolutionType(build: GraphileBuild.Build): void {
  const description = "What happens to a row whose key exists already.";
  inputTypes.registerEnum(build, RESOLUTION_TYPE, RESOLUTION_TYPE, description, RESOLUTIONS);
}

function registerTypes(build: GraphileBuild.Build, mutation: BulkMutation): void {
  const inputName = inputTypeName(build, mutation);
  inputTypes.registerInput(build, inputName, inputName, { isMutationInput: true }, () => ({
    description: `A row of the input of ${mutation.name}.`,
    extensions: NESTED_TYPE_EXTENSION,
    fields: () => Object.fromEntries(inputFields(build, mutation)),
  }));
  if (mutation.verb === "update") return;
  const description = `The columns that identify a row of ${build.inflection._allRows(mutation.table)}.`;
  const keys = [...uniqueKeysOf(mutation.table, build)].map(([name, columns]) => {
    return [name, withVisibility({}, mayUse("select", mutation.table, columns))];
  });
  const keyName = keyTypeName(build, mutation);
  inputTypes.registerEnum(build, keyName, keyName, description, Object.fromEntries(keys));
}

function inputFields(
  build: GraphileBuild.Build,
  { verb, table, key, columns }: BulkMutation,
): (readonly [string, GrafastInputFieldConfig])[] {
  if (verb === "upsert") return columns.map((column) => columnInputField(build, { table, verb: "create" }, column));
  const keyFields = key.map((column) => {
    const [name, field] = columnInputField(build, { table, verb }, column);
    const required = { ...field, type: new GraphQLNonNull(getNullableType(field.type)) };
    return [name, withVisibility(required, mayUse("select", table, [column]))] as const;
  });
  return [...keyFields, ...columns.map((column) => columnInputField(build, { table, verb }, column))];
}

/** True if Postgres can find an existing row by the key. */
function isArbiter({ extensions }: PgTable["uniques"][number]): boolean {
  return !extensions?.isFromIndex && !extensions?.isDeferrable;
}

function hasArbiter(table: PgTable, key: readonly string[]): boolean {
  return table.uniques.some((unique) => isArbiter(unique) && unique.attributes.join() === key.join());
}

/** The primary key and the unique constraints over columns that clients see, by name. */
const uniqueKeysOf = memoizePerObject(
  (table: PgTable, build: GraphileBuild.Build): ReadonlyMap<string, readonly string[]> => {
    const { inflection } = build;
    const visible = visibleColumnsOf(table, build);
    const keys = [keyOf(table)!, ...table.uniques.filter(isArbiter).map(({ attributes }) => attributes)];
    const distinct = new Map(keys.map((columns) => [columns.join(), columns]));
    const named = [...distinct.values()]
      .filter((columns, index) => index === 0 || columns.every((column) => visible.includes(column)))
      .map((columns) => {
        const names = columns.map((attributeName) => inflection.attribute({ attributeName, codec: table.codec }));
        return [inflection.coerceToGraphQLName(inflection.constantCase(names.join("_"))), columns] as const;
      });
    return withUniqueNames(named);
  },
);

function visibilityOf({ verb, table }: BulkMutation): VisibilityRule {
  const mayInsert = verb === "upsert" ? [mayUse("insert", table)] : [];
  return allRules([...mayInsert, mayUse("update", table), maySelectKey(table)]);
}

function bulkField(build: GraphileBuild.Build, mutation: BulkMutation): GrafastFieldConfig<Step> {
  const { verb, table } = mutation;
  const input = inputTypes.inputOf(build, inputTypeName(build, mutation));
  const args: NonNullable<GrafastFieldConfig<Step>["args"]> = {
    input: { type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(input))) },
    ...(verb === "upsert" && {
      onConflict: {
        type: new GraphQLNonNull(inputTypes.inputOf(build, keyTypeName(build, mutation))),
        defaultValue: uniqueKeysOf(table, build).keys().next().value,
        description: "A row with the same values in these columns exists already.",
      },
      resolution: { type: new GraphQLNonNull(inputTypes.inputOf(build, RESOLUTION_TYPE)), defaultValue: "UPDATE" },
    }),
  };
  const toWrite = (schema: GraphQLSchema, inputType: GraphQLInputType, values: readonly unknown[]) =>
    toRowsWrite(build, mutation, schema, inputType, values);
  const field: GrafastFieldConfig<Step> = {
    description: DESCRIPTIONS[verb],
    args,
    type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(outputTypeOf(build, table.codec)!))),
  };
  return withSource(field, { kind: "rows write", table, args: Object.keys(args), toWrite });
}

function toRowsWrite(
  build: GraphileBuild.Build,
  { verb, table, key }: BulkMutation,
  schema: GraphQLSchema,
  inputType: GraphQLInputType,
  [input, onConflict, resolution]: readonly unknown[],
): RowsWrite {
  const items = input as readonly object[];
  const max = build.options.maxPageSize!;
  if (items.length > max) throw new ApiError("invalid", "PGRST102", `The input has more than ${max} rows`);
  const rows = items.map((item) => readRowInput(schema, inputType, table, item));
  if (verb === "update") {
    for (const [index, { columns }] of rows.entries()) if (columns.size <= key.length) throw nothingToChange(index);
    checkAlike(rows);
    return { kind: "update", table, rows };
  }
  // Existing rows would lose the values of columns that only other rows set.
  if (resolution === "UPDATE") checkAlike(rows);
  return {
    kind: "upsert",
    table,
    rows,
    key: uniqueKeysOf(table, build).get(onConflict as string)!,
    resolution: RESOLUTIONS[resolution as keyof typeof RESOLUTIONS].resolution,
  };
}

/** Checks that all rows have the same columns, since one statement sets them. */
function checkAlike(rows: readonly RowInput[]): void {
  const [first] = rows;
  for (const [index, { columns }] of rows.entries()) {
    const isAlike =
      columns.size === first!.columns.size && [...columns.keys()].every((name) => first!.columns.has(name));
    if (!isAlike) throw invalidRow(index, "The row has other fields than the first one: give all rows the same.");
  }
}

function nothingToChange(index: number): ApiError {
  return invalidRow(index, "The row has no field besides its key: give at least one to change.");
}

function invalidRow(index: number, message: string): ApiError {
  return new ApiError("invalid", "PGRST102", message, { details: { path: String(index) } });
}
