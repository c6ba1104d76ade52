import { TYPES } from "@dataplan/pg";
import {
  type EnumValueNode,
  GraphQLError,
  type GraphQLScalarLiteralParser,
  type GraphQLScalarTypeConfig,
  Kind,
  type ValueNode,
} from "grafast/graphql";
import { type ExactNumber, isExactNumber, parseJsonExactly, parseJsonNumber } from "#runtime/json";
import {
  findBuiltInCodec,
  isInstantCodec,
  parseIsoTime,
  showAsObject,
  showAsScalar,
  TIME_CODECS,
  toIsoTime,
} from "./codecs.ts";
import { scalarNamesOver, TAKES_EXACT_NUMBERS } from "./graphql-types.ts";
import type { Codec } from "./table.ts";

type MakeStringType = GraphileBuild.Build["stringTypeSpec"];

export const ScalarInputPlugin: GraphileConfig.Plugin = {
  name: "ScalarInputPlugin",
  description:
    "Scalars that are written as text also accept numbers, in documents and variables; errors have locations",
  schema: {
    hooks: {
      build(build) {
        build.stringTypeSpec = acceptNumbers(build.stringTypeSpec);
        return build;
      },
      GraphQLScalarType: (config) =>
        config.parseLiteral ? { ...config, parseLiteral: withLocation(config.name, config.parseLiteral) } : config,
    },
  },
};

/** Accepts numbers. Core accepts them in variables only, and converts an object there to `[object Object]`. */
function acceptNumbers(typeOf: MakeStringType): MakeStringType {
  return (description, coerce, name) => {
    const refusal = `${name ?? "This type"} must be a string or a number.`;
    const read = (text: string) => (coerce ? coerce(text) : text);
    return {
      ...typeOf(description, coerce, name),
      extensions: TAKES_EXACT_NUMBERS,
      parseValue(value) {
        if (isExactNumber(value)) return read(integerText(value));
        if (typeof value !== "string" && typeof value !== "number") throw new GraphQLError(refusal);
        if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
          throw new GraphQLError("The number is too large and has lost digits: send it as a string.");
        }
        return read(String(value));
      },
      parseLiteral(node) {
        if (node.kind !== Kind.STRING && node.kind !== Kind.INT && node.kind !== Kind.FLOAT) {
          throw new GraphQLError(refusal);
        }
        return read(node.value);
      },
    };
  };
}

/** `1.0` is accepted as an integer. */
function integerText({ rawJSON }: ExactNumber): string {
  const number = Number(rawJSON);
  return Number.isSafeInteger(number) ? String(number) : rawJSON;
}

function withLocation(type: string, parse: GraphQLScalarLiteralParser<unknown>): GraphQLScalarLiteralParser<unknown> {
  return (node, variables) => {
    const enumValue = findEnumValue(node);
    // A statement would fail with an error that does not name it.
    if (enumValue)
      throw new GraphQLError(`${type} has no value ${enumValue.value}: put it in quotes.`, { nodes: enumValue });
    try {
      return parse(node, variables);
    } catch (error) {
      throw error instanceof GraphQLError && !error.nodes ? new GraphQLError(error.message, { nodes: node }) : error;
    }
  };
}

/** The first enum value within a list or an object; a single one is refused already. */
function findEnumValue(node: ValueNode): EnumValueNode | undefined {
  const values =
    node.kind === Kind.LIST ? node.values : node.kind === Kind.OBJECT ? node.fields.map(({ value }) => value) : [];
  for (const value of values) {
    const enumValue = value.kind === Kind.ENUM ? value : findEnumValue(value);
    if (enumValue) return enumValue;
  }
}

const MAX_OID = 2 ** 32 - 1;

export const StrictScalarsPlugin: GraphileConfig.Plugin = {
  name: "StrictScalarsPlugin",
  description:
    "Invalid Base64 is refused, where core would write what it can decode; an oid may be any unsigned number",
  schema: {
    hooks: {
      GraphQLScalarType(config, build) {
        if (config.name === build.inflection.builtin("Base64EncodedBinary")) return { ...config, ...BASE64_INPUT };
        return oidScalarNames(build).has(config.name) ? { ...config, ...OID_VALUES } : config;
      },
    },
  },
};

type ScalarConfig = Partial<GraphQLScalarTypeConfig<unknown, unknown>>;

const BASE64_INPUT: ScalarConfig = {
  parseValue: parseBase64,
  parseLiteral: (node) => parseBase64(node.kind === Kind.STRING ? node.value : undefined),
};

const OID_VALUES: ScalarConfig = {
  serialize: Number,
  parseValue: parseOid,
  parseLiteral: (node) => parseOid(node.kind === Kind.INT || node.kind === Kind.STRING ? node.value : null),
};

const oidScalarNames = scalarNamesOver("Oid", (codec) => codec === TYPES.oid);

function parseBase64(value: unknown): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value, "base64");
    const digits = value.replace(/[\s=]/g, "").length;
    if (digits % 4 !== 1 && bytes.length === Math.floor((digits * 3) / 4)) return bytes;
  }
  throw new GraphQLError("Binary values must be Base64.");
}

function parseOid(value: unknown): number {
  const oid = typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : Number.NaN;
  if (Number.isInteger(oid) && oid >= 0 && oid <= MAX_OID) return oid;
  throw new GraphQLError(`An oid must be an integer from 0 to ${MAX_OID}.`);
}

/** Core parses numbers in JSON to JavaScript numbers, which lose digits. */
const JSON_CODECS = {
  json: { ...TYPES.json, fromPg: parseJsonExactly },
  jsonb: { ...TYPES.jsonb, fromPg: parseJsonExactly },
} satisfies Readonly<Record<string, Codec>>;

export const JsonScalarPlugin: GraphileConfig.Plugin = {
  name: "JsonScalarPlugin",
  description: "Numbers within JSON keep their digits, both ways",
  before: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_findPgCodec: findBuiltInCodec(JSON_CODECS),
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of Object.values(JSON_CODECS)) showAsScalar(build, codec, "JSON");
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

/** Parses a literal like core, except for numbers. */
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

/** PostGraphile's name → ours. Its `Time` is a time of day. */
const SCALAR_NAMES: Readonly<Record<string, string>> = { Datetime: "Time", Time: "LocalTime" };
const LOCAL_DATE_TIME = "LocalDateTime";

export const TimeScalarPlugin: GraphileConfig.Plugin = {
  name: "TimeScalarPlugin",
  description: "timestamptz is Time: ISO 8601 in UTC, whatever the session's time zone",
  before: ["PgCodecsPlugin"],
  inflection: {
    replace: {
      builtin: (previous, _preset, name) => SCALAR_NAMES[name] ?? previous!(name),
    },
  },
  gather: {
    hooks: {
      pgCodecs_findPgCodec: findBuiltInCodec(TIME_CODECS),
    },
  },
  schema: {
    hooks: {
      init: {
        before: ["PgCodecs"],
        callback(_, build) {
          const description = "A date and time without a time zone.";
          build.registerScalarType(
            LOCAL_DATE_TIME,
            {},
            () => build.stringTypeSpec(description, undefined, LOCAL_DATE_TIME),
            "TimeScalarPlugin",
          );
          showAsScalar(build, TIME_CODECS.timestamptz, "Datetime");
          showAsScalar(build, TIME_CODECS.timestamp, LOCAL_DATE_TIME);
          showAsScalar(build, TIME_CODECS.date, "Date");
          showAsScalar(build, TIME_CODECS.time, "Time");
          showAsScalar(build, TIME_CODECS.timetz, "Time");
          showAsObject(build, TIME_CODECS.interval, "Interval");
          return _;
        },
      },
      GraphQLScalarType(config, build) {
        if (!timeScalarNames(build).has(config.name)) return config;
        return {
          ...config,
          ...(config.name === SCALAR_NAMES.Datetime && {
            description: "A point in time, ISO 8601 in UTC: `2026-11-20T10:15:00.000Z`.",
          }),
          serialize: (value) => toIsoTime(String(value)),
          parseValue: parseTimeInput,
          parseLiteral: (node) => parseTimeInput(node.kind === Kind.STRING ? node.value : undefined),
        };
      },
    },
  },
};

const timeScalarNames = scalarNamesOver("Datetime", isInstantCodec);

function parseTimeInput(value: unknown): string {
  const time = typeof value === "string" ? parseIsoTime(value) : null;
  if (time === null) throw new GraphQLError("Time must be ISO 8601, such as 2026-11-20T10:15:00Z.");
  return time;
}
