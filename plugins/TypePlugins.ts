import { isEnumCodec, type PgEnumCodec, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { GrafastInputFieldConfig } from "grafast";
import type { GraphQLEnumValueConfigMap } from "grafast/graphql";
import { gatherConfig } from "graphile-build";
import type { PgType } from "graphile-build-pg/pg-introspection";
import { parseJsonExactly } from "#runtime/json";
import { castListItems } from "./codecs.ts";
import { pgServiceOf, queryWhileGathering } from "./gather-query.ts";
import { deprecationReasonOfPart } from "./graphql-types.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface PgCodecTags {
      /** `ARCHIVED Delete it instead.`: a deprecated value and the reason. */
      deprecatedValue: string | string[];
    }
  }
}

/** GraphQL does not allow these as enum values. */
const RESERVED_VALUES: ReadonlySet<string> = new Set(["true", "false", "null"]);

export const EnumsPlugin: GraphileConfig.Plugin = {
  name: "EnumsPlugin",
  description: "Labels of enums become valid names, and can be deprecated",
  inflection: {
    replace: {
      // Core looks the label up in a table of symbols that inherits from Object.prototype.
      enumValue(previous, _preset, label, codec) {
        return label in Object.prototype ? this.coerceToGraphQLName(label) : previous!(label, codec);
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of build.allPgCodecs) {
            if (!isEnumCodec(codec)) continue;
            const name = build.inflection.enumType(codec);
            build.registerEnumType(
              name,
              {},
              () => ({ description: codec.description, values: enumValuesOf(build.inflection, codec) }),
              `the type ${codec.extensions?.pg?.schemaName}.${codec.extensions?.pg?.name}`,
            );
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], name);
          }
          return _;
        },
      },
    },
  },
};

function enumValuesOf(inflection: GraphileBuild.Inflection, codec: PgEnumCodec): GraphQLEnumValueConfigMap {
  const values: GraphQLEnumValueConfigMap = {};
  for (const { value: label } of codec.values) {
    const deprecationReason = deprecationReasonOfPart(codec.extensions?.tags?.deprecatedValue, label);
    const name = uniqueValueName(inflection.enumValue(label, codec), values);
    values[name] = { value: label, ...(deprecationReason !== undefined && { deprecationReason }) };
  }
  return values;
}

function uniqueValueName(preferred: string, values: GraphQLEnumValueConfigMap): string {
  const name = RESERVED_VALUES.has(preferred) ? `${preferred}_` : preferred;
  if (!Object.hasOwn(values, name)) return name;
  let number = 2;
  while (Object.hasOwn(values, `${name}_${number}`)) number += 1;
  return `${name}_${number}`;
}

export const CompositeTypesPlugin: GraphileConfig.Plugin = {
  name: "CompositeTypesPlugin",
  description: "A null in a list of composite values is null, and no function of such a value is a field",
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
    const each = sql`select ${cast(sql`${items}.${item}`)} from (select pg_catalog.unnest(${list}) as ${item}) as ${items}`;
    return sql`(case when ${list} is null then null else array(${each})::pg_catalog.text end)`;
  };
}

/** True for a composite type that is not the row type of a table. */
function isCompositeValue(codec: Codec | undefined): boolean {
  return Boolean(codec?.attributes) && codec?.extensions?.isTableLike === false;
}

declare global {
  namespace GraphileConfig {
    interface GatherHelpers {
      extensionTypes: Record<string, never>;
    }
  }
}

/** The rule for a cast to json is that of to_json: only casts by a function count. */
const TYPE_CAPABILITIES = `
  with comparison as (
    select opcintype as oid, pg_catalog.bool_or(amname operator(pg_catalog.=) 'btree') as "isOrdered"
      from pg_catalog.pg_opclass join pg_catalog.pg_am on pg_am.oid operator(pg_catalog.=) opcmethod
      where opcdefault and amname operator(pg_catalog.=) any ('{btree,hash}')
      group by opcintype
  )
  select type.oid::pg_catalog.text as oid,
      pg_catalog.min(casttarget::pg_catalog.regtype::pg_catalog.text) filter (where casttarget operator(pg_catalog.=) 'pg_catalog.json'::pg_catalog.regtype and castmethod operator(pg_catalog.=) 'f') as "functionCast",
      case when type.typtype operator(pg_catalog.=) 'm' or pg_catalog.bool_or("isOrdered") then 'order' when pg_catalog.count(comparison) operator(pg_catalog.>) 0 then 'equality' end as comparison
    from pg_catalog.pg_type as type
    left join pg_catalog.pg_cast on castsource operator(pg_catalog.=) type.oid
    left join comparison on comparison.oid operator(pg_catalog.=) type.oid or (comparison.oid operator(pg_catalog.=) casttarget and castmethod operator(pg_catalog.=) 'b' and castcontext operator(pg_catalog.=) 'i')
    where type.typtype operator(pg_catalog.=) any ('{b,m}') and type.typcategory operator(pg_catalog.<>) 'A'
    group by type.oid`;

type TypeCapabilities = {
  readonly oid: string;
  readonly functionCast: "json" | null;
  readonly comparison: "order" | "equality" | null;
};

/** The kinds of base types and multiranges. */
const TEXT_TYPE_KINDS: ReadonlySet<string | null> = new Set(["b", "m"]);

/** The capabilities by service, and by the oids of types. */
type ExtensionTypesState = { readonly capabilities: Map<string, ReadonlyMap<string, TypeCapabilities>> };

const jsonCodecs = new WeakSet<Codec>();
const textCodecs = new WeakSet<Codec>();

/** Core omits columns of such types. */
export const ExtensionTypesPlugin: GraphileConfig.Plugin = {
  name: "ExtensionTypesPlugin",
  description:
    "Types that core does not know, such as those of extensions, are JSON where they have a cast to json (geometry as GeoJSON), else String",
  after: ["PgCodecsPlugin"],
  gather: gatherConfig({
    namespace: "extensionTypes",
    helpers: {},
    initialState: (): ExtensionTypesState => ({ capabilities: new Map() }),
    hooks: {
      async pgIntrospection_introspection({ state, resolvedPreset }, { serviceName }) {
        const pgService = pgServiceOf(resolvedPreset, serviceName);
        const rows = await queryWhileGathering<TypeCapabilities>(pgService, TYPE_CAPABILITIES);
        state.capabilities.set(serviceName, new Map(rows.map((row) => [row.oid, row])));
      },
      pgCodecs_findPgCodec({ state, inflection }, event) {
        const { pgType, serviceName } = event;
        const schemaName = pgType.getNamespace()?.nspname;
        if (event.pgCodec || schemaName === undefined) return;
        const capabilities = state.capabilities.get(serviceName)?.get(pgType._id);
        const identity = {
          hasNaturalEquality: Boolean(capabilities?.comparison),
          hasNaturalOrdering: capabilities?.comparison === "order",
          name: inflection.typeCodecName({ pgType, serviceName }),
          sqlType: sql.identifier(schemaName, pgType.typname),
          extensions: { oid: pgType._id, pg: { serviceName, schemaName, name: pgType.typname } },
        };
        if (capabilities?.functionCast) {
          event.pgCodec = { ...TYPES.json, ...JSON_CONVERSIONS, ...identity };
          jsonCodecs.add(event.pgCodec);
        } else if (isShownAsText(pgType)) {
          event.pgCodec = { ...TYPES.text, castFromPg: (value) => sql`${value}::pg_catalog.text`, ...identity };
          textCodecs.add(event.pgCodec);
        }
      },
    },
  }),
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const json = build.inflection.builtin("JSON");
          for (const codec of build.allPgCodecs as ReadonlySet<Codec>) {
            const typeName = jsonCodecs.has(codec) ? json : textCodecs.has(codec) ? "String" : null;
            if (typeName) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], typeName);
          }
          return _;
        },
      },
    },
  },
};

const JSON_CONVERSIONS = {
  castFromPg: castToJson,
  listCastFromPg: castListItems(castToJson),
  fromPg: parseJsonExactly,
  // The type's input function reads its own text format, and JSON only where it knows any.
  toPg: (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)),
} satisfies Partial<Codec>;

function castToJson(value: SQL): SQL {
  return sql`(${value}::pg_catalog.json)::pg_catalog.text`;
}

function isShownAsText(pgType: PgType): boolean {
  // int2vector has the category of arrays and is none.
  const isArray = pgType.getElemType()?.typarray === pgType._id;
  return !isArray && TEXT_TYPE_KINDS.has(pgType.typtype);
}
