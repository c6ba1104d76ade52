import type {} from "postgraphile";
import { pgSelect } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import {
  constant,
  context,
  type GrafastFieldConfig,
  type GrafastSubscriber,
  get,
  lambda,
  listen,
  type Step,
} from "postgraphile/grafast";
import { momentTopicOf, type RowEvent, topicOf } from "./subscription-topic.ts";
import { type Codec, inputTypeOf, isTable, keyOf, outputTypeOf, sqlNameOf, type Table } from "./table.ts";
import { isMoment } from "./time-codec.ts";
import { topicValue } from "./topic-value.ts";
import { mayNameRows, visibleTo } from "./visibility.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      SubscriptionsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface PgResourceTags {
      /** `onThingAdded on:insert by:owner_id notNull`; `by:owner_id?` when it may be left out. */
      subscription: string | string[];
    }
  }
  namespace Grafast {
    interface Context {
      /** Where the events of triggers come from, by topicOf(). */
      events?: GrafastSubscriber<Record<string, RowEvent>>;
    }
  }
}

type Subscription = {
  readonly table: Table;
  readonly field: string;
  readonly operation: string;
  readonly by: string | null;
  readonly isByOptional: boolean;
  readonly isNotNull: boolean;
};

const SPELLING =
  /^(?<field>[A-Za-z]\w*)\s+on:(?<operation>insert|update)(?:\s+by:(?<by>\w+)(?<optional>\?)?)?(?<notNull>\s+notNull)?\s*$/;

export const SubscriptionsPlugin: GraphileConfig.Plugin = {
  name: "SubscriptionsPlugin",
  description: "Subscriptions that the comments of tables ask for; each event is the row as the subscriber may see it",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        if (!scope.isRootSubscription) return fields;
        const tables = Object.values(build.pgResources).filter(isTable);
        return tables.flatMap(subscriptionsOf).reduce((all, subscription) => {
          if (!build.behavior.pgResourceMatches(subscription.table, "resource:select")) return all;
          const { field: fieldName, table } = subscription;
          const field = fieldWithHooks({ fieldName, pgFieldResource: table }, () =>
            visibleTo(fieldOf(build, subscription), mayNameRows(table)),
          );
          return build.extend(all, { [fieldName]: field }, `@subscription of ${sqlNameOf(table)}`);
        }, fields);
      },
    },
  },
};

function subscriptionsOf(table: Table): Subscription[] {
  const lines = [table.extensions?.tags?.subscription ?? []].flat();
  return lines.map((line) => {
    const wrong = (what: string) => new Error(`"@subscription ${line}" of ${sqlNameOf(table)}: ${what}`);
    const { field, operation, by, optional, notNull } = SPELLING.exec(line)?.groups ?? {};
    if (!field || !operation) throw wrong("write it as: onThingAdded on:insert by:column notNull");
    if (by && !table.codec.attributes[by]) throw wrong(`there is no column "${by}"`);
    if (!keyOf(table)) throw wrong("the table has no primary key to read the row by");
    return { table, field, operation, by: by ?? null, isByOptional: Boolean(optional), isNotNull: Boolean(notNull) };
  });
}

function fieldOf(build: GraphileBuild.Build, subscription: Subscription): GrafastFieldConfig<Step> {
  const { table, operation, by, isByOptional, isNotNull } = subscription;
  const { codec, extensions } = table;
  const change = { s: extensions!.pg!.schemaName, t: extensions!.pg!.name, op: operation };
  const argument = by === null ? null : build.inflection.attribute({ attributeName: by, codec });
  const byCodec = by === null ? null : codec.attributes[by]!.codec;

  const topicFor = (value: string | null) => {
    if (value === null) return topicOf(change);
    return isMoment(byCodec!) ? momentTopicOf(change, by!, value) : topicOf(change, [by!, value]);
  };
  return {
    description: `Each row of ${build.inflection._allRows(table)} from now on, after its ${operation}.`,
    type: build.nullableIf(!isNotNull, outputTypeOf(build, codec)!),
    args:
      argument === null ? {} : { [argument]: { type: build.nullableIf(isByOptional, inputTypeOf(build, byCodec!)!) } },
    subscribePlan(_$root, args) {
      const $events = context().get("events") as Step<GrafastSubscriber<Record<string, RowEvent>>>;
      const $topic =
        argument === null ? constant(topicOf(change)) : lambda(topicValue(table, by!, args.getRaw(argument)), topicFor);
      return listen($events, $topic);
    },
    plan($event) {
      const $keys = get($event, "k");
      const identifiers = keyOf(table)!.map((column) => ({
        step: get($keys, column),
        codec: writtenByPostgres(codec.attributes[column]!.codec),
        matches: (row: SQL) => sql`${row}.${sql.identifier(column)}`,
      }));
      return pgSelect({ resource: table, identifiers }).single();
    },
  };
}

/** An event tells keys in Postgres's own words, not as clients write them. */
function writtenByPostgres(codec: Codec): Codec {
  return { ...codec, toPg: (text) => text };
}
