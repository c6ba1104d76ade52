import type {} from "postgraphile";
import type { PgInsertSingleQueryBuilder, PgUpdateSingleQueryBuilder } from "postgraphile/@dataplan/pg";
import {
  bakedInputRuntime,
  type FieldArgs,
  type GrafastFieldConfig,
  type GrafastInputFieldConfig,
  lambda,
  type SetterCapable,
  type Step,
} from "postgraphile/grafast";
import { GraphQLBoolean, GraphQLNonNull, getNullableType } from "postgraphile/graphql";
import { ApiError } from "../engine/errors.ts";
import { isIdCodec, notAnId } from "./id-codec.ts";
import { withoutHoles } from "./list-items.ts";
import { inputTypeOf, keyOf, outputTypeOf, sqlNameOf, type Table } from "./table.ts";
import { type TableMutation, tableMutationsOf, type Verb, WRITES } from "./table-mutations.ts";
import { every, mayNameRows, mayUse, typeWithoutRow, type VisibleTo, visibleTo } from "./visibility.ts";
import { deleteRow, InsertedRowStep, type RowKey, UpdatedRowStep } from "./written-row.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      TableMutationsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface Inflection {
      tableMutation(this: Inflection, details: { verb: Verb; table: Table }): string;
      tableMutationInput(this: Inflection, details: { verb: Verb; table: Table }): string;
    }
  }
}

type Build = GraphileBuild.Build;

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
            visibleTo(FIELDS[verb](build, mutation), ruleOf(mutation)),
          );
          return build.extend(all, { [name]: field }, `the table ${sqlNameOf(table)}`);
        }, fields);
      },
    },
  },
};

const FIELDS = { create: createField, update: updateField, delete: deleteField };
const DONE = new GraphQLNonNull(GraphQLBoolean);

function ruleOf({ verb, table }: TableMutation): VisibleTo {
  const mayWrite = mayUse(WRITES[verb], table);
  return verb === "create" ? mayWrite : every([mayWrite, mayNameRows(table)]);
}

function createField(build: Build, mutation: TableMutation): GrafastFieldConfig<Step> {
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
    type: isReadable ? new GraphQLNonNull(outputTypeOf(build, table.codec)!) : DONE,
    extensions: typeWithoutRow(DONE),
    plan: (_$root, args, { field }) =>
      getNullableType(field.type) === GraphQLBoolean ? lambda(insert(args), () => true) : insert(args),
  };
}

function updateField(build: Build, mutation: TableMutation): GrafastFieldConfig<Step> {
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

function deleteField(build: Build, { table }: TableMutation): GrafastFieldConfig<Step> {
  return {
    description: `Deletes a row of ${build.inflection._allRows(table)}. False when there was none that the caller may delete.`,
    args: keyArguments(build, table),
    type: DONE,
    plan: (_$root, args) => deleteRow(table, keySteps(build, table, args)),
  };
}

function inputArgument({ inflection, getInputTypeByName }: Build, mutation: TableMutation) {
  return { type: new GraphQLNonNull(getInputTypeByName(inflection.tableMutationInput(mutation))) };
}

function inputField(build: Build, { table, verb }: TableMutation, column: string): [string, GrafastInputFieldConfig] {
  const row = table.codec;
  const { codec, notNull, hasDefault, description, extensions } = row.attributes[column]!;
  const isRequired = verb === "create" && notNull && !hasDefault && !extensions?.tags?.hasDefault;
  const field: GrafastInputFieldConfig = {
    description,
    type: build.nullableIf(!isRequired, withoutHoles(inputTypeOf(build, codec)!)),
    apply(target: SetterCapable<Record<string, unknown>>, value, { schema, field: { type } }) {
      // What every object of JavaScript has under the name of a column: it was left out.
      if (typeof value === "function") return;
      // In a filter it would match nothing; written, it would become null.
      if (value != null && isIdCodec(codec) && codec.toPg(value) === null) throw notAnId(value);
      target.set(column, bakedInputRuntime(schema, type, value));
    },
  };
  const name = build.inflection.attribute({ attributeName: column, codec: row });
  return [name, visibleTo(field, mayUse(WRITES[verb], table, [column]))];
}

function keyArguments(build: Build, table: Table) {
  const { codec } = table;
  return Object.fromEntries(
    keyOf(table)!.map((column) => {
      const type = inputTypeOf(build, codec.attributes[column]!.codec)!;
      return [keyArgumentName(build, table, column), { type: new GraphQLNonNull(type) }];
    }),
  );
}

function keySteps(build: Build, table: Table, args: FieldArgs): RowKey {
  return Object.fromEntries(
    keyOf(table)!.map((column) => [column, args.getRaw(keyArgumentName(build, table, column))]),
  );
}

function keyArgumentName({ inflection }: Build, { codec }: Table, column: string): string {
  const name = inflection.attribute({ attributeName: column, codec });
  return name === "input" ? "input_" : name;
}
