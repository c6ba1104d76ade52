import { isEnumCodec } from "@dataplan/pg";
import type { GrafastFieldConfig, Step } from "grafast";
import { SCHEMA_CHANGED_MESSAGE } from "#postgres/database";
import { unavailable } from "#runtime";
import { isInstantCodec } from "./codecs.ts";
import { type QueryTopicValue, withSource } from "./field-sources.ts";
import { invalidIdError, toOriginalCodec } from "./IdScalarPlugin.ts";
import { timeTopicOf, topicOf } from "./row-events.ts";
import { type Codec, inputTypeOf, keyOf, outputTypeOf, type PgTable, sqlNameOf, tablesOf } from "./table.ts";
import { maySelectKey, withVisibility } from "./VisibilityPlugin.ts";

declare global {
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `onThingAdded on:insert by:owner_id notNull`; `by:owner_id?` makes the argument optional. */
      subscription: string | string[];
    }
  }
}

/** Types whose values have one spelling, in GraphQL as in Postgres. */
const CANONICAL_TYPES: ReadonlySet<string> = new Set([
  "int2",
  "int4",
  "int8",
  "bool",
  "text",
  "varchar",
  "citext",
  "uuid",
]);

/** Resolves domains to their base type: a role without usage on a domain's schema cannot name the domain. */
const RESOLVE_COLUMN_TYPE = `
  with recursive typed as (
    select atttypid as type, atttypmod as modifier from pg_catalog.pg_attribute
    where attrelid operator(pg_catalog.=) pg_catalog.to_regclass(pg_catalog.format('%I.%I', $1::pg_catalog.text, $2::pg_catalog.text)) and attname operator(pg_catalog.=) $3
    union all
    select typbasetype, typtypmod from typed join pg_catalog.pg_type on pg_type.oid operator(pg_catalog.=) type where typtype operator(pg_catalog.=) 'd'
  )
  select pg_catalog.format_type(type, modifier) from typed join pg_catalog.pg_type on pg_type.oid operator(pg_catalog.=) type where typtype operator(pg_catalog.<>) 'd'`;

const SUBSCRIPTION_TAG =
  /^(?<field>[A-Za-z]\w*)\s+on:(?<operation>insert|update)(?:\s+by:(?<by>\w+)(?<optional>\?)?)?(?<notNull>\s+notNull)?\s*$/;

export const SubscriptionsPlugin: GraphileConfig.Plugin = {
  name: "SubscriptionsPlugin",
  description: "Subscriptions declared in comments of tables; each event is the row as the subscriber may see it",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        if (!scope.isRootSubscription) return fields;
        return tablesOf(build)
          .flatMap(parseSubscriptionTags)
          .reduce((all, subscription) => {
            if (!build.behavior.pgResourceMatches(subscription.table, "resource:select")) return all;
            const { field: fieldName, table } = subscription;
            const field = fieldWithHooks({ fieldName, pgFieldResource: table }, () =>
              withVisibility(subscriptionField(build, subscription), maySelectKey(table)),
            );
            return build.extend(all, { [fieldName]: field }, `@subscription of ${sqlNameOf(table)}`);
          }, fields);
      },
    },
  },
};

type SubscriptionTag = {
  readonly table: PgTable;
  readonly field: string;
  readonly operation: string;
  readonly filterColumn: string | null;
  readonly isFilterOptional: boolean;
  readonly isNotNull: boolean;
};

function parseSubscriptionTags(table: PgTable): SubscriptionTag[] {
  const lines = [table.extensions?.tags?.subscription ?? []].flat();
  return lines.map((line) => {
    const makeTagError = (problem: string) => new Error(`"@subscription ${line}" of ${sqlNameOf(table)}: ${problem}`);
    const { field, operation, by, optional, notNull } = SUBSCRIPTION_TAG.exec(line)?.groups ?? {};
    if (!field || !operation) throw makeTagError("write it as: onThingAdded on:insert by:column notNull");
    if (by && !table.codec.attributes[by]) throw makeTagError(`there is no column "${by}"`);
    if (!keyOf(table)) throw makeTagError("the table has no primary key to read the row by");
    return {
      table,
      field,
      operation,
      filterColumn: by ?? null,
      isFilterOptional: Boolean(optional),
      isNotNull: Boolean(notNull),
    };
  });
}

function subscriptionField(build: GraphileBuild.Build, subscription: SubscriptionTag): GrafastFieldConfig<Step> {
  const { table, operation, filterColumn, isFilterOptional, isNotNull } = subscription;
  const { codec, extensions } = table;
  const change = { s: extensions!.pg!.schemaName, t: extensions!.pg!.name, op: operation };
  const argument = filterColumn === null ? null : build.inflection.attribute({ attributeName: filterColumn, codec });
  const filterCodec = filterColumn === null ? null : codec.attributes[filterColumn]!.codec;

  const topicFor = async (value: unknown, query: QueryTopicValue) => {
    if (filterColumn === null || value == null) return topicOf(change);
    const text = await canonicalTopicValue(table, filterColumn, value, query);
    return isInstantCodec(filterCodec!)
      ? timeTopicOf(change, filterColumn, text)
      : topicOf(change, [filterColumn, text]);
  };
  const field: GrafastFieldConfig<Step> = {
    description: `Emits each row of ${build.inflection._allRows(table)} after its ${operation}.`,
    type: build.nullableIf(!isNotNull, outputTypeOf(build, codec)!),
    args:
      argument === null
        ? {}
        : { [argument]: { type: build.nullableIf(isFilterOptional, inputTypeOf(build, filterCodec!)!) } },
  };
  return withSource(field, { kind: "event", table, argument, topicFor });
}

/** The value of a column in Postgres's spelling, as events carry it. */
async function canonicalTopicValue(
  { codec: row, extensions }: PgTable,
  column: string,
  value: unknown,
  query: QueryTopicValue,
): Promise<string> {
  const { codec } = row.attributes[column]!;
  if (hasCanonicalText(codec)) return toCanonicalText(codec, value);
  const { schemaName, name } = extensions!.pg!;
  const type = await query(RESOLVE_COLUMN_TYPE, [schemaName, name, column]);
  if (type == null) throw unavailable(SCHEMA_CHANGED_MESSAGE);
  const text = `select pg_catalog.to_jsonb($1::pg_catalog.text::${type}) operator(pg_catalog.#>>) '{}'`;
  return (await query(text, [codec.toPg(value)]))!;
}

function hasCanonicalText(codec: Codec): boolean {
  if (codec.domainOfCodec) return hasCanonicalText(codec.domainOfCodec);
  return isEnumCodec(codec) || CANONICAL_TYPES.has(toOriginalCodec(codec).name);
}

function toCanonicalText(codec: Codec, value: unknown): string {
  // `true` as in JSON, not Postgres's `t`.
  const text = typeof value === "boolean" ? String(value) : codec.toPg(value);
  if (text === null) throw invalidIdError(value);
  return String(text);
}
