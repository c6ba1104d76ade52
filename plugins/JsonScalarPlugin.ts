import type {} from "postgraphile";
import { Kind, type ValueNode } from "postgraphile/graphql";
import { parseNumber } from "../engine/exact-json.ts";
import { oncePer } from "../engine/once-per.ts";
import { domainScalars } from "./domain-scalars.ts";
import { TAKES_EXACT_NUMBERS } from "./exact-scalars.ts";
import { isJson, JSON_LISTS, JSON_TYPES } from "./json-codec.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      JsonScalarPlugin: true;
    }
  }
}

export const JsonScalarPlugin: GraphileConfig.Plugin = {
  name: "JsonScalarPlugin",
  description: "Numbers within JSON keep their digits, both ways",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec(_info, event) {
        const { typname } = event.pgType;
        if (event.pgCodec || event.pgType.getNamespace()?.nspname !== "pg_catalog") return;
        event.pgCodec = (JSON_TYPES as Readonly<Record<string, Codec>>)[typname] ?? JSON_LISTS[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of Object.values(JSON_TYPES)) {
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], build.inflection.builtin("JSON"));
          }
          return _;
        },
      },
      GraphQLScalarType: (config, build) =>
        namesOf(build).has(config.name)
          ? { ...config, parseLiteral: read, extensions: { ...config.extensions, ...TAKES_EXACT_NUMBERS } }
          : config,
    },
  },
};

const namesOf = oncePer(
  (build: GraphileBuild.Build): ReadonlySet<string> =>
    new Set([build.inflection.builtin("JSON"), ...domainScalars(build, isJson)]),
);

type Variables = Readonly<Record<string, unknown>> | null | undefined;

/** As core does, but for numbers. */
function read(node: ValueNode, variables: Variables): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return parseNumber(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.LIST:
      return node.values.map((item) => read(item, variables));
    case Kind.OBJECT: {
      const members = node.fields.map(({ name, value }) => [name.value, read(value, variables)] as const);
      return Object.assign(Object.create(null), Object.fromEntries(members));
    }
    case Kind.VARIABLE:
      return variables?.[node.name.value];
    default:
      return node.kind === Kind.NULL ? null : undefined;
  }
}
