import type { GrafastInputFieldConfig } from "grafast";
import { getNullableType } from "grafast/graphql";
import { AddedTypes } from "./name-claims.ts";
import { NESTED_TYPE_EXTENSION, nestedRelationsOf, takenColumns, withNestedRelation } from "./nested-inputs.ts";
import { columnInputField } from "./TableMutationsPlugin.ts";
import { keyOf, type PgRelation, type PgTable, tablesOf, writableColumnsOf } from "./table.ts";
import { allRules, maySelectKey, mayUse, type VisibilityRule, withVisibility } from "./VisibilityPlugin.ts";
import type { NamedRelation } from "./WherePlugin.ts";

declare global {
  namespace GraphileBuild {
    interface ScopeInputObject {
      /** The relation that leads to the rows which the input creates together with others. */
      nestedRelation?: PgRelation;
    }
  }
}

export const NestedInsertPlugin: GraphileConfig.Plugin = {
  name: "NestedInsertPlugin",
  description: "createThing(input) also creates related rows, by foreign keys with @nestedInsert",
  schema: {
    hooks: {
      init: {
        // Other types keep their names.
        after: [
          "PgCodecs",
          "IndexedTablesPlugin",
          "FiltersPlugin",
          "TableMutationsPlugin",
          "WherePlugin",
          "OrderByPlugin",
        ],
        callback(_, build) {
          for (const table of tablesOf(build)) {
            for (const each of nestedRelationsOf(build, table, null)) registerNestedType(build, table, each);
          }
          return _;
        },
      },
      GraphQLInputObjectType_fields(fields, build, { scope: { createdTable, nestedRelation } }) {
        // The row is read by its key afterwards.
        if (createdTable && keyOf(createdTable)) return withNestedFields(build, fields, createdTable, null);
        if (!nestedRelation) return fields;
        return withNestedFields(build, fields, nestedRelation.remoteResource as PgTable, nestedRelation);
      },
    },
  },
};

type InputFields = Record<string, GrafastInputFieldConfig>;

const nestedTypes = new AddedTypes<PgRelation>();

function registerNestedType(build: GraphileBuild.Build, table: PgTable, { name, relation }: NamedRelation): void {
  const { inflection } = build;
  const target = relation.remoteResource as PgTable;
  const typeName = inflection.tableType(table.codec);
  const nestedName = inflection.inputType(`${typeName}${inflection.upperCamelCase(name.replace(/_+$/, ""))}Nested`);
  const taken = takenColumns(relation);
  const columns = writableColumnsOf(build, target, "insert").filter((column) => !taken.includes(column));
  const scope = { isMutationInput: true, nestedRelation: relation };
  nestedTypes.registerInput(build, relation, nestedName, scope, () => ({
    description: `A row of ${inflection._allRows(target)} that is created with a row of ${inflection._allRows(table)}.`,
    extensions: NESTED_TYPE_EXTENSION,
    fields: () =>
      Object.fromEntries(columns.map((column) => columnInputField(build, { table: target, verb: "create" }, column))),
  }));
}

/** Adds the fields for related rows. The input sets a foreign key by its columns or by the row that it refers to. */
function withNestedFields(
  build: GraphileBuild.Build,
  fields: InputFields,
  table: PgTable,
  through: PgRelation | null,
): InputFields {
  const relations = nestedRelationsOf(build, table, through);
  if (relations.length === 0) return fields;
  const { inflection } = build;
  const references = relations.filter(({ relation }) => !relation.isReferencee);
  const optional = new Set(
    references.flatMap(({ relation }) =>
      relation.localAttributes.map((attributeName) => inflection.attribute({ attributeName, codec: table.codec })),
    ),
  );
  for (const [name, field] of Object.entries(fields)) {
    if (optional.has(name)) fields[name] = { ...field, type: getNullableType(field.type) };
  }
  const nested = relations.map((each) => [each.name, nestedField(build, table, each, through)]);
  return build.extend(fields, Object.fromEntries(nested), `related rows of ${table.name}`);
}

function nestedField(
  build: GraphileBuild.Build,
  table: PgTable,
  { relation, isMany }: NamedRelation,
  through: PgRelation | null,
): GrafastInputFieldConfig {
  const { GraphQLList, GraphQLNonNull } = build.graphql;
  const type = nestedTypes.inputOf(build, relation);
  const rows = build.inflection._allRows(relation.remoteResource as PgTable);
  const field: GrafastInputFieldConfig = {
    description: isMany ? `Rows of ${rows} to create with it.` : `The row of ${rows} to create with it.`,
    type: isMany ? new GraphQLList(new GraphQLNonNull(type)) : type,
  };
  const mayRead = through ? [] : [maySelectKey(table)];
  return withVisibility(withNestedRelation(field, relation), allRules([mayInsertAlong(table, relation), ...mayRead]));
}

/** True if the key that one row receives from the other can be read and written. */
function mayInsertAlong(
  table: PgTable,
  { remoteResource, isReferencee, localAttributes, remoteAttributes }: PgRelation,
): VisibilityRule {
  const target = remoteResource as PgTable;
  const [referenced, key, referencing, columns] = isReferencee
    ? [table, localAttributes, target, remoteAttributes]
    : [target, remoteAttributes, table, localAttributes];
  return allRules([
    mayUse("insert", target),
    mayUse("insert", referencing, columns),
    mayUse("select", referenced, key),
  ]);
}
