import { listOfCodec, TYPES } from "@dataplan/pg";
import { Kind, type ValueNode } from "grafast/graphql";
import { parseJsonExactly, parseJsonNumber } from "../engine/json/json-values.ts";
import { findBuiltInCodec } from "./codecs.ts";
import { scalarNamesOver, TAKES_EXACT_NUMBERS } from "./graphql-types.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      JsonScalarPlugin: true;
    }
  }
}

/** Core parses numbers in JSON to JavaScript numbers, which lose digits. */
const JSON_CODECS = {
  json: { ...TYPES.json, fromPg: parseJsonExactly },
  jsonb: { ...TYPES.jsonb, fromPg: parseJsonExactly },
} satisfies Readonly<Record<string, Codec>>;

const JSON_LIST_CODECS: Readonly<Record<string, Codec>> = {
  _json: listOfCodec(JSON_CODECS.json, { name: "json[]" }),
  _jsonb: listOfCodec(JSON_CODECS.jsonb, { name: "jsonb[]" }),
};

export const JsonScalarPlugin: GraphileConfig.Plugin = {
  name: "JsonScalarPlugin",
  description: "Numbers within JSON keep their digits, both ways",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec: findBuiltInCodec({ ...JSON_CODECS, ...JSON_LIST_CODECS }),
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
          ? { ...config, parseLiteral: parseJsonLiteral, extensions: { ...config.extensions, ...TAKES_EXACT_NUMBERS } }
          : config,
    },
  },
};

const jsonScalarNames = scalarNamesOver("JSON", (codec) => Object.values<Codec>(JSON_CODECS).includes(codec));

type LiteralVariables = Readonly<Record<string, unknown>> | null | undefined;

/** Like core's, except for numbers. */
function parseJsonLiteral(node: ValueNode, variables: LiteralVariables): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return parseJsonNumber(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.LIST:
      return node.values.map((item) => parseJsonLiteral(item, variables));
    case Kind.OBJECT: {
      const members = node.fields.map(({ name, value }) => [name.value, parseJsonLiteral(value, variables)] as const);
      return Object.assign(Object.create(null), Object.fromEntries(members));
    }
    case Kind.VARIABLE:
      return variables?.[node.name.value];
    default:
      return node.kind === Kind.NULL ? null : undefined;
  }
}
