import { TYPES } from "@dataplan/pg";
import { GraphQLError, type GraphQLScalarTypeConfig, Kind } from "grafast/graphql";
import { scalarNamesOver } from "./graphql-types.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      StrictScalarsPlugin: true;
    }
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
