import type { GrafastFieldConfig, GrafastInputFieldConfig, Step } from "grafast";
import { GraphQLBoolean, GraphQLNonNull } from "grafast/graphql";
import { ApiError, memoizePerObject } from "#runtime";
import { functionMutationsOf } from "./FunctionMutationsPlugin.ts";
import { type KeyArgument, type MutationVerb, withSource } from "./field-sources.ts";
import { isSignUp } from "./function-call.ts";
import { withNonNullItems } from "./graphql-types.ts";
import { inputTypeOf, keyOf, outputTypeOf, type PgTable, sqlNameOf, tablesOf, writableColumnsOf } from "./table.ts";
import {
  allRules,
  maySelectKey,
  mayUse,
  type VisibilityRule,
  withFallbackType,
  withVisibility,
} from "./VisibilityPlugin.ts";
import { withWrittenColumn } from "./written-columns.ts";

declare global {
  namespace GraphileBuild {
    interface ScopeInputObject {
      /** The table in which the input of a mutation creates a row. */
      createdTable?: PgTable;
    }
    interface Inflection {
      tableMutation(this: Inflection, details: { verb: MutationVerb; table: PgTable }): string;
      tableMutationInput(this: Inflection, details: { verb: MutationVerb; table: PgTable }): string;
    }
  }
}

/** PostGraphile's behavior names. */
const WRITE_BEHAVIORS = { create: "insert", update: "update", delete: "delete" } as const;

const FIELD_BUILDERS = { create: createField, update: updateField, delete: deleteField };
const DONE_TYPE = new GraphQLNonNull(GraphQLBoolean);

export const TableMutationsPlugin: GraphileConfig.Plugin = {
  name: "TableMutationsPlugin",
  description: "createThing(input), updateThing(id, input), deleteThing(id), unless a function has that name",
  inflection: {
    add: {
      tableMutation(_preset, { verb, table }) {
        return this.camelCase(`${verb}-${this._singularizedResourceName(table)}`);
      },
      tableMutationInput(_preset, details) {
        return this.inputType(this.upperCamelCase(this.tableMutation(details)));
      },
    },
  },
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgAttribute, attribute }) {
        if (!pgAttribute.attgenerated) return;
        attribute.extensions = { ...attribute.extensions, isInsertable: false, isUpdatable: false };
      },
    },
  },
  schema: {
    entityBehavior: { pgResource: ["resource:insert", "resource:update", "resource:delete"] },
    hooks: {
      init(_, build) {
        for (const mutation of tableMutationsOf(build).filter(({ columns }) => columns.length > 0)) {
          const { name, table, columns } = mutation;
          build.registerInputObjectType(
            build.inflection.tableMutationInput(mutation),
            { isMutationInput: true, ...(mutation.verb === "create" && { createdTable: table }) },
            () => ({
              description: `The input of ${name}.`,
              fields: () => Object.fromEntries(columns.map((column) => columnInputField(build, mutation, column))),
            }),
            `the table ${sqlNameOf(table)}`,
          );
        }
        return _;
      },
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        if (!scope.isRootMutation) return fields;
        return tableMutationsOf(build).reduce((all, mutation) => {
          const { name, table, verb } = mutation;
          const field = fieldWithHooks({ fieldName: name, pgFieldResource: table }, () =>
            withVisibility(FIELD_BUILDERS[verb](build, mutation), mutationVisibility(mutation)),
          );
          return build.extend(all, { [name]: field }, `the table ${sqlNameOf(table)}`);
        }, fields);
      },
    },
  },
};

/** The generated mutations of all tables; a function of the same name replaces one. */
const tableMutationsOf = memoizePerObject((build: GraphileBuild.Build): TableMutation[] =>
  tablesOf(build).flatMap((table) => mutationsOfTable(table, build)),
);

export const mutationsOfTable = memoizePerObject((table: PgTable, build: GraphileBuild.Build): TableMutation[] =>
  [
    ...mutationOf(build, table, "create"),
    ...mutationOf(build, table, "update"),
    ...mutationOf(build, table, "delete"),
  ].filter(({ name }) => !functionMutationNames(build).has(name)),
);

export const functionMutationNames = memoizePerObject((build: GraphileBuild.Build): ReadonlySet<string> => {
  return new Set(functionMutationsOf(build).map((resource) => build.inflection.customMutationField({ resource })));
});

function mutationVisibility({ verb, table }: TableMutation): VisibilityRule {
  const mayWrite = mayUse(WRITE_BEHAVIORS[verb], table);
  return verb === "create" ? mayWrite : allRules([mayWrite, maySelectKey(table)]);
}

function createField(build: GraphileBuild.Build, mutation: TableMutation): GrafastFieldConfig<Step> {
  const { table, isReadable } = mutation;
  // A caller who may insert and not select gets true.
  const field: GrafastFieldConfig<Step> = {
    description: `Adds a row to ${build.inflection._allRows(table)}.`,
    args: { input: inputArgument(build, mutation) },
    type: isReadable ? new GraphQLNonNull(outputTypeOf(build, table.codec)!) : DONE_TYPE,
  };
  const countsSignUp = isSignUp(table);
  const noRowError = rowNotInsertedError;
  const source = { kind: "write", verb: "create", table, key: [], noRowError, countsSignUp } as const;
  return withSource(withFallbackType(field, DONE_TYPE), source);
}

function updateField(build: GraphileBuild.Build, mutation: TableMutation): GrafastFieldConfig<Step> {
  const { table } = mutation;
  const field: GrafastFieldConfig<Step> = {
    description: `Updates a row of ${build.inflection._allRows(table)}. Fields that are not given keep their values.`,
    args: { ...keyArguments(build, table), input: inputArgument(build, mutation) },
    type: new GraphQLNonNull(outputTypeOf(build, table.codec)!),
  };
  const key = keyArgumentsOf(build, table);
  const noRowError = rowNotFoundError;
  return withSource(field, { kind: "write", verb: "update", table, key, noRowError, countsSignUp: false });
}

function deleteField(build: GraphileBuild.Build, { table }: TableMutation): GrafastFieldConfig<Step> {
  const field: GrafastFieldConfig<Step> = {
    description: `Deletes a row of ${build.inflection._allRows(table)}. Returns false when the caller may delete no such row.`,
    args: keyArguments(build, table),
    type: DONE_TYPE,
  };
  const key = keyArgumentsOf(build, table);
  return withSource(field, { kind: "write", verb: "delete", table, key, noRowError: null, countsSignUp: false });
}

function inputArgument({ inflection, getInputTypeByName }: GraphileBuild.Build, mutation: TableMutation) {
  return { type: new GraphQLNonNull(getInputTypeByName(inflection.tableMutationInput(mutation))) };
}

/** The field of an input that sets a column, by its name. */
export function columnInputField(
  build: GraphileBuild.Build,
  { table, verb }: Pick<TableMutation, "table" | "verb">,
  column: string,
): [string, GrafastInputFieldConfig] {
  const row = table.codec;
  const { codec, notNull, hasDefault, description, extensions } = row.attributes[column]!;
  const isRequired = verb === "create" && notNull && !hasDefault && !extensions?.tags?.hasDefault;
  const field: GrafastInputFieldConfig = {
    description,
    type: build.nullableIf(!isRequired, withNonNullItems(inputTypeOf(build, codec)!)),
  };
  const name = build.inflection.attribute({ attributeName: column, codec: row });
  return [
    name,
    withVisibility(withWrittenColumn(field, { column, codec }), mayUse(WRITE_BEHAVIORS[verb], table, [column])),
  ];
}

function keyArguments(build: GraphileBuild.Build, table: PgTable) {
  const { codec } = table;
  return Object.fromEntries(
    keyArgumentsOf(build, table).map(({ column, argument }) => {
      const type = inputTypeOf(build, codec.attributes[column]!.codec)!;
      return [argument, { type: new GraphQLNonNull(type) }];
    }),
  );
}

function keyArgumentsOf({ inflection }: GraphileBuild.Build, table: PgTable): KeyArgument[] {
  return keyOf(table)!.map((column) => {
    const name = inflection.attribute({ attributeName: column, codec: table.codec });
    return { column, argument: name === "input" ? "input_" : name };
  });
}

type TableMutation = {
  readonly verb: MutationVerb;
  readonly table: PgTable;
  readonly name: string;
  /** The columns of its input. */
  readonly columns: readonly string[];
  /** True if anybody may see the row afterwards. */
  readonly isReadable: boolean;
};

function mutationOf(build: GraphileBuild.Build, table: PgTable, verb: MutationVerb): TableMutation[] {
  const { behavior, inflection } = build;
  if (!behavior.pgResourceMatches(table, `resource:${WRITE_BEHAVIORS[verb]}`)) return [];
  const isReadable = behavior.pgResourceMatches(table, "resource:select") === true;
  // Addressing a row by its key requires select on the key.
  if (verb !== "create" && (keyOf(table) === null || !isReadable)) return [];
  const name = inflection.tableMutation({ verb, table });
  if (verb === "delete") return [{ verb, table, name, columns: [], isReadable }];
  const columns = writableColumnsOf(build, table, WRITE_BEHAVIORS[verb]);
  return columns.length > 0 ? [{ verb, table, name, columns, isReadable }] : [];
}

function rowNotInsertedError(): ApiError {
  return new ApiError(
    "notFound",
    "RESOURCE_NOT_FOUND",
    "The row was not inserted: a trigger skipped or redirected it.",
  );
}

function rowNotFoundError(): ApiError {
  return new ApiError("notFound", "RESOURCE_NOT_FOUND", "Row not found, or you may not change it.");
}

export function emptyInputError(): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", "The input is empty: give at least one field to change.");
}
