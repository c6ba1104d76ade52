import {
  type PgInsertSingleQueryBuilder,
  PgInsertSingleStep,
  type PgUpdateSingleQueryBuilder,
  PgUpdateSingleStep,
  sideEffectWithPgClient,
  sqlValueWithCodec,
} from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import {
  bakedInputRuntime,
  type ExecutionDetails,
  type FieldArgs,
  type GrafastFieldConfig,
  type GrafastInputFieldConfig,
  lambda,
  list,
  type SetterCapable,
  type Step,
} from "postgraphile/grafast";
import { GraphQLBoolean, GraphQLNonNull, getNullableType } from "postgraphile/graphql";
import { memoizePerObject } from "../engine/cache/memoize.ts";
import { ApiError } from "../engine/errors.ts";
import { functionMutationsOf } from "./FunctionMutationsPlugin.ts";
import { withNonNullItems } from "./graphql-types.ts";
import { invalidIdError, isIdCodec } from "./IdScalarPlugin.ts";
import { inputTypeOf, isTable, keyOf, outputTypeOf, type PgTable, sqlNameOf } from "./table.ts";
import {
  allRules,
  fallbackTypeExtension,
  maySelectKey,
  mayUse,
  type VisibilityRule,
  withVisibility,
} from "./VisibilityPlugin.ts";

/** What PostGraphile's behaviors call them. */
const WRITE_BEHAVIORS = { create: "insert", update: "update", delete: "delete" } as const;

/** What clients may do to tables, where no function of that name does it. */
const tableMutationsOf = memoizePerObject((build: GraphileBuild.Build): TableMutation[] =>
  Object.values(build.pgResources)
    .filter(isTable)
    .flatMap((table) => mutationsOfTable(table, build)),
);

export const mutationsOfTable = memoizePerObject((table: PgTable, build: GraphileBuild.Build): TableMutation[] =>
  [
    ...mutationOf(build, table, "create"),
    ...mutationOf(build, table, "update"),
    ...mutationOf(build, table, "delete"),
  ].filter(({ name }) => !functionMutationNames(build).has(name)),
);

const functionMutationNames = memoizePerObject((build: GraphileBuild.Build): ReadonlySet<string> => {
  return new Set(functionMutationsOf(build).map((resource) => build.inflection.customMutationField({ resource })));
});

export const GeneratedColumnsPlugin: GraphileConfig.Plugin = {
  name: "GeneratedColumnsPlugin",
  description: "What Postgres computes is no input",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgAttribute, attribute }) {
        if (!pgAttribute.attgenerated) return;
        attribute.extensions = { ...attribute.extensions, isInsertable: false, isUpdatable: false };
      },
    },
  },
};

declare global {
  namespace GraphileConfig {
    interface Plugins {
      TableMutationsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface Inflection {
      tableMutation(this: Inflection, details: { verb: MutationVerb; table: PgTable }): string;
      tableMutationInput(this: Inflection, details: { verb: MutationVerb; table: PgTable }): string;
    }
  }
}

type MutationBuild = GraphileBuild.Build;

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
  schema: {
    entityBehavior: { pgResource: ["resource:insert", "resource:update", "resource:delete"] },
    hooks: {
      init(_, build) {
        for (const mutation of tableMutationsOf(build).filter(({ columns }) => columns.length > 0)) {
          const { name, table, columns } = mutation;
          build.registerInputObjectType(
            build.inflection.tableMutationInput(mutation),
            { isMutationInput: true },
            () => ({
              description: `What ${name} is given.`,
              fields: () => Object.fromEntries(columns.map((column) => inputField(build, mutation, column))),
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

const FIELD_BUILDERS = { create: createField, update: updateField, delete: deleteField };
const DONE_TYPE = new GraphQLNonNull(GraphQLBoolean);

function mutationVisibility({ verb, table }: TableMutation): VisibilityRule {
  const mayWrite = mayUse(WRITE_BEHAVIORS[verb], table);
  return verb === "create" ? mayWrite : allRules([mayWrite, maySelectKey(table)]);
}

function createField(build: MutationBuild, mutation: TableMutation): GrafastFieldConfig<Step> {
  const { table, isReadable } = mutation;
  const insert = (args: FieldArgs) => {
    const $row = new InsertedRowStep(table);
    args.apply($row, "input", (builder: PgInsertSingleQueryBuilder) => builder.setBuilder());
    return $row;
  };
  // A caller who may add rows and read none learns that it was done.
  return {
    description: `Adds a row to ${build.inflection._allRows(table)}.`,
    args: { input: inputArgument(build, mutation) },
    type: isReadable ? new GraphQLNonNull(outputTypeOf(build, table.codec)!) : DONE_TYPE,
    extensions: fallbackTypeExtension(DONE_TYPE),
    plan: (_$root, args, { field }) =>
      getNullableType(field.type) === GraphQLBoolean ? lambda(insert(args), () => true) : insert(args),
  };
}

function updateField(build: MutationBuild, mutation: TableMutation): GrafastFieldConfig<Step> {
  const { table } = mutation;
  return {
    description: `Changes a row of ${build.inflection._allRows(table)}. What is left out stays as it is.`,
    args: { ...keyArguments(build, table), input: inputArgument(build, mutation) },
    type: new GraphQLNonNull(outputTypeOf(build, table.codec)!),
    plan(_$root, args) {
      const $row = new UpdatedRowStep(table, keySteps(build, table, args));
      args.apply($row, "input", (builder: PgUpdateSingleQueryBuilder, input: object) => {
        if (Object.keys(input).length > 0) return builder.setBuilder();
        throw new ApiError(400, "VALIDATION_ERROR", "The input names nothing to change.");
      });
      return $row;
    },
  };
}

function deleteField(build: MutationBuild, { table }: TableMutation): GrafastFieldConfig<Step> {
  return {
    description: `Deletes a row of ${build.inflection._allRows(table)}. False when there was none that the caller may delete.`,
    args: keyArguments(build, table),
    type: DONE_TYPE,
    plan: (_$root, args) => deleteRow(table, keySteps(build, table, args)),
  };
}

function inputArgument({ inflection, getInputTypeByName }: MutationBuild, mutation: TableMutation) {
  return { type: new GraphQLNonNull(getInputTypeByName(inflection.tableMutationInput(mutation))) };
}

function inputField(
  build: MutationBuild,
  { table, verb }: TableMutation,
  column: string,
): [string, GrafastInputFieldConfig] {
  const row = table.codec;
  const { codec, notNull, hasDefault, description, extensions } = row.attributes[column]!;
  const isRequired = verb === "create" && notNull && !hasDefault && !extensions?.tags?.hasDefault;
  const field: GrafastInputFieldConfig = {
    description,
    type: build.nullableIf(!isRequired, withNonNullItems(inputTypeOf(build, codec)!)),
    apply(target: SetterCapable<Record<string, unknown>>, value, { schema, field: { type } }) {
      // What every object of JavaScript has under the name of a column: it was left out.
      if (typeof value === "function") return;
      // In a filter it would match nothing; written, it would become null.
      if (value != null && isIdCodec(codec) && codec.toPg(value) === null) throw invalidIdError(value);
      target.set(column, bakedInputRuntime(schema, type, value));
    },
  };
  const name = build.inflection.attribute({ attributeName: column, codec: row });
  return [name, withVisibility(field, mayUse(WRITE_BEHAVIORS[verb], table, [column]))];
}

function keyArguments(build: MutationBuild, table: PgTable) {
  const { codec } = table;
  return Object.fromEntries(
    keyOf(table)!.map((column) => {
      const type = inputTypeOf(build, codec.attributes[column]!.codec)!;
      return [keyArgumentName(build, table, column), { type: new GraphQLNonNull(type) }];
    }),
  );
}

function keySteps(build: MutationBuild, table: PgTable, args: FieldArgs): KeySteps {
  return Object.fromEntries(
    keyOf(table)!.map((column) => [column, args.getRaw(keyArgumentName(build, table, column))]),
  );
}

function keyArgumentName({ inflection }: MutationBuild, { codec }: PgTable, column: string): string {
  const name = inflection.attribute({ attributeName: column, codec });
  return name === "input" ? "input_" : name;
}

type MutationVerb = "create" | "update" | "delete";

type TableMutation = {
  readonly verb: MutationVerb;
  readonly table: PgTable;
  readonly name: string;
  /** What its input may hold. */
  readonly columns: readonly string[];
  /** Whether anybody may see the row afterwards. */
  readonly isReadable: boolean;
};

function mutationOf(
  { behavior, inflection }: GraphileBuild.Build,
  table: PgTable,
  verb: MutationVerb,
): TableMutation[] {
  if (!behavior.pgResourceMatches(table, `resource:${WRITE_BEHAVIORS[verb]}`)) return [];
  const isReadable = behavior.pgResourceMatches(table, "resource:select") === true;
  // Who names a row by its key has to be able to read that.
  if (verb !== "create" && (keyOf(table) === null || !isReadable)) return [];
  const name = inflection.tableMutation({ verb, table });
  if (verb === "delete") return [{ verb, table, name, columns: [], isReadable }];
  const columns = Object.keys(table.codec.attributes).filter((column) =>
    behavior.pgCodecAttributeMatches([table.codec, column], `attribute:${WRITE_BEHAVIORS[verb]}`),
  );
  return columns.length > 0 ? [{ verb, table, name, columns, isReadable }] : [];
}

/** The steps that name a row: each column of the key and its value. */
type KeySteps = Readonly<Record<string, Step>>;

/** The row that was added. Rejects when a trigger let it fall, or put it elsewhere; core would give a row of nulls. */
class InsertedRowStep extends PgInsertSingleStep<PgTable> {
  override async execute(details: ExecutionDetails) {
    const rows = await super.execute(details);
    return rows.map(async (row) => {
      const written = await row;
      return written.c === 0 ? Promise.reject(rowNotInsertedError(this.resource)) : written;
    });
  }
}

/** The row as it has become. Rejects when there is none that the caller may change; core would give null. */
class UpdatedRowStep extends PgUpdateSingleStep<PgTable> {
  override async execute(details: ExecutionDetails) {
    const rows = await super.execute(details);
    return rows.map(async (row) => (await row) ?? Promise.reject(rowNotFoundError(this.resource)));
  }
}

/** Whether there was a row that the caller might delete. */
function deleteRow(table: PgTable, key: KeySteps): Step<boolean> {
  const columns = Object.keys(key);
  const from = table.from as SQL;
  return sideEffectWithPgClient(table.executor, list(Object.values(key)), async (client, values) => {
    const conditions = columns.map((column, index) => {
      const { codec } = table.codec.attributes[column]!;
      return sql`${sql.identifier(column)} = ${sqlValueWithCodec(values[index], codec)}`;
    });
    const { rowCount } = await client.query(
      sql.compile(sql`delete from ${from} where ${sql.join(conditions, " and ")}`),
    );
    return (rowCount ?? 0) > 0;
  });
}

function rowNotInsertedError(table: PgTable): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "A trigger took the row: it left it out, or put it elsewhere.", {
    details: sqlNameOf(table),
  });
}

function rowNotFoundError(table: PgTable): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "There is no such row, or it is not yours to change.", {
    details: sqlNameOf(table),
  });
}

declare global {
  namespace GraphileConfig {
    interface Plugins {
      GeneratedColumnsPlugin: true;
    }
  }
}
