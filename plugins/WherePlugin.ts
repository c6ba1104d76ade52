import type { GraphQLInputFieldConfig, GraphQLInputType } from "grafast/graphql";
import { memoizePerObject } from "#runtime";
import { dimensionsOf, itemCodecOf } from "./ArrayDimensionsPlugin.ts";
import { baseCodecOf } from "./codecs.ts";
import type { WithExtensions } from "./extension.ts";
import { functionsOfType } from "./FunctionPrecedencePlugin.ts";
import { withNonNullItems } from "./graphql-types.ts";
import { AddedTypes, withUniqueNames } from "./name-claims.ts";
import { columnsShownAsRelations, relationFieldName } from "./relation-names.ts";
import { type ConditionField, type ConditionFields, QUANTIFIERS } from "./row-conditions.ts";
import {
  isSearched,
  OPERATORS,
  type OperatorFamily,
  operatorFamilyOf,
  type RowOperator,
  SEARCHES,
} from "./row-operators.ts";
import {
  type Codec,
  inputTypeOf,
  isTable,
  type PgRelation,
  type PgTable,
  relationEntriesOf,
  type SchemaResource,
  tablesOf,
} from "./table.ts";
import { mayFollowRelation, mayUse, type VisibilityRule, withVisibility } from "./VisibilityPlugin.ts";

declare global {
  namespace GraphileBuild {
    interface ScopeInputObject {
      isRowCondition?: boolean;
    }
  }
}

/** The table whose rows a field returns, some of them in an order: the field then has the arguments `where` and `orderBy`. */
export function collectionTableOf({
  pgFieldResource,
  isPgFieldConnection,
  isPgFieldSimpleCollection,
}: Partial<GraphileBuild.ScopeObjectFieldsField>): PgTable | null {
  if (!(isPgFieldConnection || isPgFieldSimpleCollection)) return null;
  return pgFieldResource && isTable(pgFieldResource) ? pgFieldResource : null;
}

/** Extensions of the arguments `where` and `orderBy`, since a filter for a column can have such a name. */
export const ROW_ARGUMENT = { isRowArgument: true };

export function hasRowArgument(
  { args }: { readonly args: readonly (WithExtensions & { readonly name: string })[] },
  name: "where" | "orderBy",
): boolean {
  return args.some((argument) => argument.name === name && isRowArgument(argument));
}

export function isRowArgument({ extensions }: WithExtensions): boolean {
  return (extensions as Partial<typeof ROW_ARGUMENT> | null | undefined)?.isRowArgument === true;
}

const SEARCH_TYPE = "FullTextSearchInput";
const SEARCHED_COLUMN_TYPE = "SearchedColumn";
const NULL_TYPE = "NullOperatorsInput";

export const WherePlugin: GraphileConfig.Plugin = {
  name: "WherePlugin",
  description: "Collections are filtered by any column and relation",
  schema: {
    hooks: {
      init: {
        // Types of the database keep their names.
        after: ["PgCodecs", "IndexedTablesPlugin", "FiltersPlugin"],
        callback(_, build) {
          registerOperatorTypes(build);
          for (const table of tablesOf(build)) registerWhereTypes(build, table);
          return _;
        },
      },
      GraphQLObjectType_fields_field_args: {
        // An argument for a column named "where" keeps its name.
        after: ["FiltersPlugin", "PaginationPlugin"],
        callback(args, build, { scope, Self }) {
          const table = collectionTableOf(scope);
          if (!table || "where" in args) return args;
          const where = {
            type: inputOf(build, table, "Where"),
            description: "Selects the rows that meet the condition.",
            extensions: ROW_ARGUMENT,
          };
          return build.extend(args, { where }, `Filtering ${Self.name}.${scope.fieldName}`);
        },
      },
    },
  },
};

/** The types by the names that they have unless those are taken. */
const inputTypes = new AddedTypes<string>();

/** The type with this name, or with the next free one. */
function registerInput(
  build: GraphileBuild.Build,
  preferred: string,
  spec: () => { description: string; isOneOf?: true; fields: () => Record<string, GraphQLInputFieldConfig> },
): void {
  inputTypes.registerInput(build, preferred, preferred, { isRowCondition: true }, spec);
}

type TableInput = "Where" | "RowsWhere" | "Search" | "SearchedField";

function inputNameOf({ inflection }: GraphileBuild.Build, { codec }: PgTable, input: TableInput): string {
  return inflection.inputType(`${inflection.tableType(codec)}${input}`);
}

function inputOf(build: GraphileBuild.Build, table: PgTable, input: TableInput): GraphQLInputType {
  return inputTypes.inputOf(build, inputNameOf(build, table, input));
}

function registerWhereTypes(build: GraphileBuild.Build, table: PgTable): void {
  const { inflection } = build;
  registerInput(build, inputNameOf(build, table, "Where"), () => ({
    description: `A condition on the rows of ${inflection._allRows(table)}. All given fields must hold; null never does.`,
    fields: () =>
      Object.fromEntries(
        [...conditionFieldsOf(table, build)].map(([name, field]) => [name, whereField(build, table, field)]),
      ),
  }));
  if (isSearchedTable(table, build)) registerSearchTypes(build, table);
  registerInput(build, inputNameOf(build, table, "RowsWhere"), () => ({
    description: `A condition on the related rows of ${inflection._allRows(table)}.`,
    fields: () =>
      Object.fromEntries(
        Object.entries(QUANTIFIERS).map(([name, description]) => [
          name,
          { type: inputOf(build, table, "Where"), description },
        ]),
      ),
  }));
}

/** The type of a search of the table's rows. Null if none of its columns can be searched. */
export function searchTypeOf(build: GraphileBuild.Build, table: PgTable): GraphQLInputType | null {
  return isSearchedTable(table, build) ? inputOf(build, table, "Search") : null;
}

function registerSearchTypes(build: GraphileBuild.Build, table: PgTable): void {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const rows = build.inflection._allRows(table);
  registerInput(build, inputNameOf(build, table, "Search"), () => ({
    description: `A full-text search of ${rows}. All given operators must hold.`,
    fields: () => ({
      fields: {
        type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(inputOf(build, table, "SearchedField")))),
        description: "What is searched, as one text; without any, no row is found.",
      },
      ...Object.fromEntries(
        Object.entries(SEARCHES).map(([name, { description }]) => [
          name,
          { type: inputTypes.inputOf(build, SEARCH_TYPE), description },
        ]),
      ),
    }),
  }));
  registerInput(build, inputNameOf(build, table, "SearchedField"), () => ({
    description: `A column of ${rows}, or of all rows that a relation leads to.`,
    isOneOf: true,
    fields: () =>
      Object.fromEntries(
        [...conditionFieldsOf(table, build)].flatMap(([name, field]) => {
          const input = searchedField(build, table, field);
          return input ? [[name, input]] : [];
        }),
      ),
  }));
}

function searchedField(build: GraphileBuild.Build, table: PgTable, field: ConditionField) {
  switch (field.kind) {
    case "column": {
      if (!isSearched(field.codec)) return null;
      const type = inputTypes.inputOf(build, SEARCHED_COLUMN_TYPE);
      return withVisibility({ type }, mayUse("select", table, [field.column]));
    }
    case "related row":
    case "related rows": {
      const target = field.relation.remoteResource as PgTable;
      if (!isSearchedTable(target, build)) return null;
      const type = inputOf(build, target, "SearchedField");
      return withVisibility({ type }, mayFollowRelation(build, field.relation));
    }
    default:
      return null;
  }
}

/** True if a column of the table can be searched. */
export const isSearchedTable = memoizePerObject((table: PgTable, build: GraphileBuild.Build): boolean =>
  filterableColumnsOf(build, table).some((column) => isSearched(table.codec.attributes[column]!.codec)),
);

const WITH_AND_OR_NOT = {
  and: "All of the conditions hold.",
  or: "At least one of the conditions holds; none does in an empty list.",
  not: "The condition does not hold.",
} as const;

function whereField(build: GraphileBuild.Build, table: PgTable, field: ConditionField): GraphQLInputFieldConfig {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const ruled = (type: GraphQLInputType, rule: VisibilityRule, description?: string | null) =>
    withVisibility({ type, description: description ?? null }, rule);
  switch (field.kind) {
    case "and":
    case "or":
      return ruled(
        new GraphQLList(new GraphQLNonNull(inputOf(build, table, "Where"))),
        mayUse("select", table),
        WITH_AND_OR_NOT[field.kind],
      );
    case "not":
      return ruled(inputOf(build, table, "Where"), mayUse("select", table), WITH_AND_OR_NOT.not);
    case "search":
      return ruled(
        inputOf(build, table, "Search"),
        mayUse("select", table),
        "The words are in texts of the row and of related rows.",
      );
    case "column":
      return ruled(
        inputTypes.inputOf(build, operatorTypeName(build, field.codec)),
        mayUse("select", table, [field.column]),
        table.codec.attributes[field.column]!.description,
      );
    case "related row":
    case "related rows": {
      const target = field.relation.remoteResource as PgTable;
      const type = inputOf(build, target, field.kind === "related row" ? "Where" : "RowsWhere");
      return ruled(type, mayFollowRelation(build, field.relation));
    }
  }
}

/** The fields of the `where` input of a table: `and`, `or` and `not`, then columns and relations by the names of their fields. */
export const conditionFieldsOf = memoizePerObject((table: PgTable, build: GraphileBuild.Build): ConditionFields => {
  const toColumn = (column: string): ConditionField => {
    return { kind: "column", column, codec: table.codec.attributes[column]!.codec };
  };
  const relations = relationsOf(table, build).map(({ name, relation, isMany }): NamedRowField<ConditionField> => {
    const fields = () => conditionFieldsOf(relation.remoteResource as PgTable, build);
    return [name, { kind: isMany ? "related rows" : "related row", relation, fields }];
  });
  return withUniqueNames([
    ...(["and", "or", "not"] as const).map((kind): NamedRowField<ConditionField> => [kind, { kind }]),
    ...columnsAndRelations(build, table, filterableColumnsOf(build, table), toColumn, relations),
    ...(isSearchedTable(table, build) ? [["search", { kind: "search" } as const] as const] : []),
  ]);
});

export type NamedRowField<Field> = readonly [name: string, field: Field];

/** Columns that the schema shows as relations come last, since a relation may have the name of its column. */
export function columnsAndRelations<Field>(
  { inflection, input }: GraphileBuild.Build,
  { codec }: PgTable,
  columns: readonly string[],
  toColumn: (column: string) => Field,
  relations: readonly NamedRowField<Field>[],
): NamedRowField<Field>[] {
  const hidden = columnsShownAsRelations(codec, input.pgRegistry);
  const named = (column: string): NamedRowField<Field> => [
    inflection.attribute({ attributeName: column, codec }),
    toColumn(column),
  ];
  return [
    ...columns.filter((column) => !hidden.has(column)).map(named),
    ...relations,
    ...columns.filter((column) => hidden.has(column)).map(named),
  ];
}

function filterableColumnsOf(build: GraphileBuild.Build, table: PgTable): string[] {
  const { attributes } = table.codec;
  return visibleColumnsOf(table, build).filter(
    (column) =>
      // A type without equality is never "filterBy".
      attributes[column]!.codec.hasNaturalEquality === false ||
      build.behavior.pgCodecAttributeMatches([table.codec, column], "attribute:filterBy") === true,
  );
}

/** The stored columns that the schema shows: as a field, as a relation, or by a function with the name of the column's field. */
export const visibleColumnsOf = memoizePerObject(({ codec }: PgTable, build: GraphileBuild.Build): string[] => {
  const shownAsRelations = columnsShownAsRelations(codec, build.input.pgRegistry);
  const functions = functionsOfType(build, codec);
  return Object.keys(codec.attributes).filter((column) => {
    const { via, expression, extensions } = codec.attributes[column]!;
    if (via || expression) return false;
    const name = build.inflection.attribute({ attributeName: column, codec });
    return (
      shownAsRelations.has(column) ||
      (functions.has(name) && extensions?.tags?.behavior === undefined) ||
      build.behavior.pgCodecAttributeMatches([codec, column], "attribute:select") === true
    );
  });
});

export type NamedRelation = { readonly name: string; readonly relation: PgRelation; readonly isMany: boolean };

/** The relations that the schema shows, with the names of their fields. */
export const relationsOf = memoizePerObject(({ codec }: PgTable, build: GraphileBuild.Build): NamedRelation[] => {
  const registry = build.input.pgRegistry;
  return relationEntriesOf(registry, codec).flatMap(([relationName, relation]) => {
    const { isUnique, remoteResource, extensions } = relation;
    if (extensions?.isTemporal || !isTable(remoteResource as SchemaResource)) return [];
    const isMany = !isUnique;
    const behavior = isMany ? "manyRelation:resource:list" : "singularRelation:resource:single";
    if (!build.behavior.pgCodecRelationMatches(relation, behavior)) return [];
    const name = relationFieldName(build.inflection, { registry, codec, relationName }, relation);
    return { name, relation, isMany };
  });
});

/** The suffix of each family's operator types; the family's most usual type, if there is one, goes without it. */
const FAMILY_NAMES: Readonly<Record<OperatorFamily, readonly [usual: string | null, name: string]>> = {
  ordered: [null, ""],
  equality: [null, ""],
  text: ["String", "Text"],
  list: [null, "List"],
  range: [null, ""],
  json: [null, ""],
  "full text": [null, "FullText"],
  none: [null, ""],
};

/** One type for all columns with the same operators and values. */
function operatorTypeName(build: GraphileBuild.Build, codec: Codec): string {
  const family = operatorFamilyOf(codec);
  if (family === "none") return NULL_TYPE;
  const base = baseCodecOf(codec);
  const value = family === "list" ? itemCodecOf(base) : codec;
  const input = build.getGraphQLTypeNameByPgCodec(value, "input");
  if (input === null) return NULL_TYPE;
  const [usual, familyName] = FAMILY_NAMES[family];
  const isOtherText = family === "ordered" && input === "String";
  const suffix = family === "list" ? familyName.repeat(dimensionsOf(base)) : familyName;
  return `${input.replace(/Input$/, "")}${input === usual ? "" : isOtherText ? "Ordered" : suffix}OperatorsInput`;
}

function registerOperatorTypes(build: GraphileBuild.Build): void {
  const { GraphQLString, GraphQLNonNull, GraphQLBoolean } = build.graphql;
  const codecs = new Map<string, Codec | null>([[NULL_TYPE, null]]);
  for (const { codec } of tablesOf(build)) {
    for (const attribute of Object.values(codec.attributes)) {
      const name = operatorTypeName(build, attribute.codec);
      if (!codecs.has(name)) codecs.set(name, attribute.codec);
    }
  }
  inputTypes.registerEnum(build, SEARCHED_COLUMN_TYPE, SEARCHED_COLUMN_TYPE, "How a column is searched.", {
    TEXT: { description: "By the words of its text." },
  });
  registerInput(build, SEARCH_TYPE, () => ({
    description: "A full-text search.",
    fields: () => ({
      query: { type: new GraphQLNonNull(GraphQLString), description: "The words." },
      language: {
        type: GraphQLString,
        description: "A text search configuration such as `german`; the database's own without it.",
      },
    }),
  }));
  for (const [name, codec] of codecs) {
    registerInput(build, name, () => ({
      description: "Conditions on one column. All given operators must hold; null never does.",
      fields: () => ({
        isNull: { type: GraphQLBoolean, description: "Whether the column is null." },
        ...(codec && operatorFields(build, codec)),
      }),
    }));
  }
}

function operatorFields(build: GraphileBuild.Build, codec: Codec): Record<string, GraphQLInputFieldConfig> {
  const { GraphQLString, GraphQLList, GraphQLNonNull } = build.graphql;
  const inputType = inputTypeOf(build, codec);
  const valueType = inputType && withNonNullItems(inputType);
  const typeOf = ({ operand }: RowOperator): GraphQLInputType | null => {
    switch (operand) {
      case "value":
        return valueType;
      case "list of values":
        return valueType && new GraphQLList(new GraphQLNonNull(valueType));
      case "text":
        return GraphQLString;
      case "search":
        return inputTypes.inputOf(build, SEARCH_TYPE);
    }
  };
  return Object.fromEntries(
    Object.entries(OPERATORS[operatorFamilyOf(codec)]).flatMap(([name, operator]) => {
      const type = typeOf(operator);
      return type ? [[name, { type, description: operator.description }]] : [];
    }),
  );
}
