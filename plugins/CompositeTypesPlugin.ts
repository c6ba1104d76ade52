import { PgClassExpressionStep, PgSelectSingleStep, pgSelectSingleFromRecord } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { type GrafastInputFieldConfig, get, inhibitOnNull, type Step } from "grafast";
import type {} from "graphile-build-pg";
import type { Codec, SchemaResource } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      CompositeTypesPlugin: true;
    }
    interface Provides {
      compositeTypes: true;
    }
  }
}

/** Core sends each composite value back to Postgres to extract its fields, which the value already contains. */
export const CompositeTypesPlugin: GraphileConfig.Plugin = {
  name: "CompositeTypesPlugin",
  description:
    "Fields of composite types are taken from the value, without another statement; a null in a list is null",
  gather: {
    hooks: {
      pgCodecs_PgCodec(_info, { pgCodec }) {
        const { castFromPg } = pgCodec;
        if (isCompositeValue(pgCodec) && castFromPg) pgCodec.listCastFromPg = listCastOf(castFromPg);
      },
    },
  },
  schema: {
    entityBehavior: {
      pgResource: {
        inferred: {
          after: ["inferred"],
          provides: ["compositeTypes"],
          // A function of such a value would have to send it back to Postgres.
          callback: (behavior, { parameters }) =>
            isCompositeValue(parameters?.[0]?.codec) ? [behavior, "-typeField"] : behavior,
        },
      },
    },
    hooks: {
      GraphQLObjectType: (config, _build, { scope }) =>
        isCompositeValue(scope.pgCodec) ? { ...config, assertStep: null } : config,
      GraphQLObjectType_fields_field(field, build, { scope }) {
        const { pgCodec: parent, pgFieldAttribute: attribute } = scope;
        if (!attribute || !parent?.attributes) return field;
        const [column] = Object.entries(parent.attributes).find(([, candidate]) => candidate === attribute) ?? [];
        if (column === undefined) return field;
        const codec: Codec = attribute.codec;
        if (
          isCompositeValue(codec.arrayOfCodec ?? codec) ||
          (isCompositeValue(parent) && !(codec.arrayOfCodec ?? codec).attributes)
        ) {
          return { ...field, plan: ($value) => get($value, column) };
        }
        const table = codec.attributes ? (build.pgTableResource(codec as never) as SchemaResource | null) : null;
        return table ? { ...field, plan: ($value) => planTableRow(table, get($value, column) as Step) } : field;
      },
      GraphQLInputObjectType_fields_field(field, _build, { scope: { fieldName, pgAttribute } }) {
        const { apply } = field as GrafastInputFieldConfig;
        if (!pgAttribute || !apply || !(fieldName in Object.prototype)) return field;
        const guarded: GrafastInputFieldConfig = {
          ...field,
          // A method of Object.prototype with that name: the client sent no such field.
          apply: (target, value, info) => (typeof value === "function" ? undefined : apply(target, value, info)),
        };
        return guarded;
      },
    },
  },
};

/** Core expands the items in `from`, where Postgres turns a null item into a row of nulls. */
function listCastOf(cast: (value: SQL) => SQL) {
  return (list: SQL): SQL => {
    const [items, item] = [sql.identifier(Symbol("items")), sql.identifier("item")];
    const each = sql`select ${cast(sql`${items}.${item}`)} from (select unnest(${list}) as ${item}) as ${items}`;
    return sql`(case when ${list} is null then null else array(${each})::text end)`;
  };
}

/** Whether it is a composite type and not the row type of a table. */
function isCompositeValue(codec: Codec | undefined): boolean {
  return Boolean(codec?.attributes) && codec?.extensions?.isTableLike === false;
}

/**
 * The row of a table has relations and functions, which need Postgres. They are added to the statement that reads the value, where it
 * can be extended; otherwise a statement of their own runs unless the value is null.
 */
function planTableRow(table: SchemaResource, $row: Step): Step {
  const $record = canExtendStatement($row) ? $row : inhibitOnNull($row);
  const $found = pgSelectSingleFromRecord(table, $record as Parameters<typeof pgSelectSingleFromRecord>[1]);
  $found.getClassStep().setTrusted();
  return $found;
}

function canExtendStatement($value: Step): boolean {
  const $row = $value instanceof PgClassExpressionStep ? $value.getParentStep() : null;
  return $row instanceof PgSelectSingleStep && !$row.getClassStep().hasSideEffects;
}
