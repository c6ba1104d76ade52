import { listOfCodec, TYPES } from "postgraphile/@dataplan/pg";
import { Kind, type ValueNode } from "postgraphile/graphql";
import { memoizePerObject } from "../engine/cache/memoize.ts";
import { parseJsonExactly, parseJsonNumber } from "../engine/json/json-values.ts";
import { domainScalarNames, TAKES_EXACT_NUMBERS } from "./graphql-types.ts";
import type { Codec } from "./table.ts";

/** Core makes numbers of JavaScript of those in JSON, which lose digits. */
const JSON_CODECS = {
  json: { ...TYPES.json, fromPg: parseJsonExactly },
  jsonb: { ...TYPES.jsonb, fromPg: parseJsonExactly },
} satisfies Readonly<Record<string, Codec>>;

const JSON_LIST_CODECS: Readonly<Record<string, Codec>> = {
  _json: listOfCodec(JSON_CODECS.json, { name: "json[]" }),
  _jsonb: listOfCodec(JSON_CODECS.jsonb, { name: "jsonb[]" }),
};

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
        event.pgCodec = (JSON_CODECS as Readonly<Record<string, Codec>>)[typname] ?? JSON_LIST_CODECS[typname] ?? null;
      },
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of Object.values(JSON_CODECS)) {
            build.setGraphQLTypeForPgCodec(codec, ["input", "output"], build.inflection.builtin("JSON"));
          }
          return _;
        },
      },
      GraphQLScalarType: (config, build) =>
        jsonScalarNames(build).has(config.name)
          ? { ...config, parseLiteral: readJsonLiteral, extensions: { ...config.extensions, ...TAKES_EXACT_NUMBERS } }
          : config,
    },
  },
};

const jsonScalarNames = memoizePerObject(
  (build: GraphileBuild.Build): ReadonlySet<string> =>
    new Set([build.inflection.builtin("JSON"), ...domainScalarNames(build, isJsonCodec)]),
);

type LiteralVariables = Readonly<Record<string, unknown>> | null | undefined;

/** As core does, but for numbers. */
function readJsonLiteral(node: ValueNode, variables: LiteralVariables): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return parseJsonNumber(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.LIST:
      return node.values.map((item) => readJsonLiteral(item, variables));
    case Kind.OBJECT: {
      const members = node.fields.map(({ name, value }) => [name.value, readJsonLiteral(value, variables)] as const);
      return Object.assign(Object.create(null), Object.fromEntries(members));
    }
    case Kind.VARIABLE:
      return variables?.[node.name.value];
    default:
      return node.kind === Kind.NULL ? null : undefined;
  }
}

/** json and jsonb, and the domains over them. */
function isJsonCodec(codec: Codec): boolean {
  const { json, jsonb } = JSON_CODECS;
  return codec === json || codec === jsonb || Boolean(codec.domainOfCodec && isJsonCodec(codec.domainOfCodec));
}
